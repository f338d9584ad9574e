"""Functional calls, methods of tensors, and calls in the middle of a line."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def activations(x: Tensor) -> Tensor:
    x = functional.gelu(x)  # op: gelu
    x = functional.silu(x)  # op: silu
    x = functional.leaky_relu(x)  # op: leaky_relu
    x = functional.softmax(x, dim=-1)  # op: softmax
    x = functional.layer_norm(x, (8,))  # op: layer_norm
    x = functional.dropout(x, 0.5)  # op: dropout
    return functional.log_softmax(x, dim=-1)  # op: log_softmax


def methods(x: Tensor) -> Tensor:
    y = x.relu()  # op: relu
    y.add_(1).mul_(2)  # op: add_ mul_
    y = y.view(2, 16).permute(1, 0).contiguous()  # op: view permute contiguous
    y = y.masked_fill(y > 1, 0.0)  # op: gt masked_fill
    y = y.cumsum(0).flatten()  # op: cumsum flatten
    return y.sort().values.topk(3).values.max()  # op: sort topk max


def losses(x: Tensor, y: Tensor) -> Tensor:
    a = functional.mse_loss(x, y)  # op: mse_loss
    b = functional.l1_loss(x, y)  # op: l1_loss
    c = functional.cross_entropy(x, torch.tensor([1, 2, 3, 0]))  # op: cross_entropy_loss
    return a + b + c  # op: add*2


def double(x: Tensor) -> Tensor:
    return x * 2  # op: mul*5


def half(x: Tensor) -> Tensor:
    y = x / 2  # op: div*3
    return y.exp()  # op: exp*3


def in_the_middle(x: Tensor) -> Tensor:
    y = double(x) + half(x)  # op: add
    z = torch.cat([double(y), y.cos(), half(y)]) - 1  # op: cos cat sub
    return double(z).sum() * half(double(z)).sum() @ z.new_ones(())  # op: sum*2 mul new_ones


def with_default(x: Tensor, scale: float = 2.0, *rest: Tensor, **named: Tensor) -> Tensor:
    y = x * scale  # op: mul
    for other in rest:
        y = y + other  # op: add*2
    return y - named["last"]  # op: sub


def recursive(x: Tensor, depth: int) -> Tensor:
    if depth == 0:
        return x.sin()  # op: sin
    y = recursive(x, depth - 1)
    return y * depth + recursive_end(y)  # op: mul*4 add*4


def recursive_end(x: Tensor) -> Tensor:
    return x.tanh()  # op: tanh*4


def main() -> None:
    x = torch.ones(4, 8)  # op: ones
    activations(x)
    methods(x)
    losses(x, torch.zeros(4, 8))  # op: zeros
    with_default(x, 3.0, x, x, last=torch.zeros_like(x))  # op: zeros_like
    recursive(x, 4)
    double(half(x))
    try:
        in_the_middle(x)
    except RuntimeError:
        torch.ones(2).neg()  # op: ones neg
