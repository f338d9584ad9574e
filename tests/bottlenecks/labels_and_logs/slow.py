"""A tagger writes binary cross entropy out, with a sigmoid and two logarithms.

analyzer: handwritten_fused_ops
line: chances = torch.sigmoid(logits)
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def loss_of(logits: Tensor, tags: Tensor) -> Tensor:
    chances = torch.sigmoid(logits)
    present = tags * torch.log(chances + 1e-7)
    absent = (1 - tags) * torch.log(1 - chances + 1e-7)
    return -(present + absent).mean()


def main() -> None:
    torch.manual_seed(0)
    head = nn.Linear(768, 4096)
    hidden, tags = torch.randn(512, 768), (torch.rand(512, 4096) < 0.01).float()
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            head.zero_grad()
            torch.autograd.backward(loss_of(head(hidden), tags))
            profiler.step()


if __name__ == "__main__":
    main()
