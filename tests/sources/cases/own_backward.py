# mypy: disable-error-code="no-any-return, no-untyped-call"
"""Model code that runs inside the backward pass: it keeps its own lines."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = x * 2  # op: mul
        return y.floor()  # op: floor

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        mask = x.abs() < 1  # op: abs lt
        return grads[0] * mask  # op: mul


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        h = x @ self.weight  # op: matmul*4 MmBackward0*2
        return h.tanh()  # op: tanh*4 TanhBackward0*2


def hook(grad: Tensor) -> Tensor:
    return grad.clamp(-1, 1)  # op: clamp


def after(parameter: Tensor) -> None:
    parameter.neg()  # op: neg


def main() -> None:
    x = torch.full((4, 4), 0.5, requires_grad=True)  # op: full
    block = Block()
    x.register_hook(hook)
    block.weight.register_post_accumulate_grad_hook(after)
    y = Clipped.apply(x)  # op: Clipped ClippedBackward
    y = checkpoint(block, y, use_reentrant=False)
    y = checkpoint(block, y, use_reentrant=False)
    y.sum().backward()  # op: sum SumBackward0
