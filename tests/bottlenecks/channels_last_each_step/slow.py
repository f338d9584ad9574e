"""Every step lays its images out anew, although all of them could lie that way from the start.

analyzer: layout_copies
line: images = batch.contiguous(memory_format=torch.channels_last)
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    batches = [torch.randn(8, 64, 128, 128) for _ in range(3)]
    model = nn.Conv2d(64, 8, 1)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for batch in batches:
            images = batch.contiguous(memory_format=torch.channels_last)
            model(images)
            profiler.step()


if __name__ == "__main__":
    main()
