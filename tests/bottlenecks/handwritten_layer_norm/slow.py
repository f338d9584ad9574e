"""A ranking service normalises with mean and variance spelled out.

analyzer: handwritten_fused_ops
line: mean = hidden.mean(dim=-1, keepdim=True)
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Normed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, hidden: Tensor) -> Tensor:
        mean = hidden.mean(dim=-1, keepdim=True)
        variance = (hidden - mean).pow(2).mean(dim=-1, keepdim=True)
        return (hidden - mean) / torch.sqrt(variance + 1e-5) * self.weight + self.bias


def main() -> None:
    torch.manual_seed(0)
    norm, head = Normed(1024), nn.Linear(1024, 64)
    hidden = torch.randn(1024, 1024)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            head(norm(hidden))
            profiler.step()


if __name__ == "__main__":
    main()
