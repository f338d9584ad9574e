"""A module of several layers: product, activations, norm and residual."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16, bias=False)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x)  # own: addmm mm=32x8x16 sum
        h = functional.gelu(h)  # own: gelu gelu_backward
        h = self.down(h)  # own: mm=8x32x16 mm=16x8x32 mm=8x16x32
        h = torch.tanh(h)  # own: tanh tanh_backward
        h = h + x  # own: add
        y: torch.Tensor = self.norm(h)  # own: native_layer_norm native_layer_norm_backward
        return y


def main() -> None:
    torch.manual_seed(0)
    torch.compile(Block())(torch.randn(8, 16)).sum().backward()
