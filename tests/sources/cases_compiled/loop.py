"""A loop over layers, and one over lines."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(12, 12, bias=False) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)  # own: mm
            x = functional.silu(x)  # own: silu silu_backward
        for _ in range(3):
            x = functional.softplus(x)  # own: softplus softplus_backward
        return x.amax(dim=1)  # own: amax eq mul div sum view


def main() -> None:
    torch.manual_seed(0)
    torch.compile(Stack())(torch.randn(6, 12)).sum().backward()
