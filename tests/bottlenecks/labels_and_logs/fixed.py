"""A tagger takes its loss from the logits in one op."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    head = nn.Linear(768, 4096)
    hidden, tags = torch.randn(512, 768), (torch.rand(512, 4096) < 0.01).float()
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            head.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(head(hidden), tags)
            torch.autograd.backward(loss)
            profiler.step()


if __name__ == "__main__":
    main()
