"""A function and a module that other scripts import: their lines are in this file."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


def gated(x: torch.Tensor) -> torch.Tensor:
    gate = torch.sigmoid(x)  # own: sigmoid sigmoid_backward
    return gate.sin()  # own: sin cos mul


class Narrow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(40, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x)  # own: addmm=2x40x5 mm=5x2x40 mm=2x5x40 sum
        return functional.softplus(y)  # own: softplus softplus_backward
