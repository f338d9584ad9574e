"""The images are laid out once, where they are made."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    made = [torch.randn(8, 64, 128, 128) for _ in range(3)]
    batches = [batch.contiguous(memory_format=torch.channels_last) for batch in made]
    model = nn.Conv2d(64, 8, 1)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for batch in batches:
            model(batch)
            profiler.step()


if __name__ == "__main__":
    main()
