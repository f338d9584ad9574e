# mypy: disable-error-code="no-any-return, no-untyped-call"
"""Activation checkpoints of both kinds, around modules and functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        h = x @ self.weight  # op: matmul*2 MmBackward0
        return h.tanh()  # op: tanh*2 TanhBackward0


def function(x: Tensor) -> Tensor:
    y = x.sin()  # op: sin*4 SinBackward0*2
    y = y * 3  # op: mul*3 MulBackward0*2
    return y.exp()  # op: exp*3 ExpBackward0*2


class Part(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sigmoid()  # op: sigmoid*3 SigmoidBackward0*2


def main() -> None:
    x = torch.full((4, 4), 0.5, requires_grad=True)  # op: full
    y = checkpoint(Block(), x, use_reentrant=True)  # op: CheckpointFunction
    y = checkpoint(function, y, use_reentrant=True)  # op: CheckpointFunction
    y = checkpoint(function, y, use_reentrant=False)
    y = checkpoint_sequential([Part(), Part()], 2, y, use_reentrant=False)
    y.sum().backward()  # op: sum SumBackward0
