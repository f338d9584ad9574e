"""A language model whose loss is one op."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits, targets)


def main() -> None:
    torch.manual_seed(0)
    head = nn.Linear(128, 8192)
    hidden, targets = torch.randn(256, 128), torch.randint(8192, (256,))
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            head.zero_grad()
            torch.autograd.backward(loss_of(head(hidden), targets))
            profiler.step()


if __name__ == "__main__":
    main()
