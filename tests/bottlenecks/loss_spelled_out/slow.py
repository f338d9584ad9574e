"""A language model computes its loss from the logits, as in the paper's formula.

analyzer: handwritten_fused_ops
line: shifted = logits - logits.max(dim=-1, keepdim=True).values
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    log_probabilities = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()
    return -log_probabilities.gather(dim=-1, index=targets[:, None]).mean()


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
