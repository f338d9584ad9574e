# mypy: disable-error-code="no-any-return, no-untyped-call"
"""Backward ops and their line in the forward."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def first(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w  # op: matmul MmBackward0
    h = h * x  # op: mul MulBackward0
    h = h + w.sum(0)  # op: sum add SumBackward1 AddBackward0
    return torch.tanh(  # op: tanh TanhBackward0
        h - x  # op: sub SubBackward0
    )


def second(h: Tensor) -> Tensor:
    a, b = h.chunk(2, dim=1)  # op: chunk SplitBackward0
    a, b = a.exp(), b.cos()  # op: exp cos ExpBackward0 CosBackward0
    c = torch.cat([a, b], dim=1)  # op: cat CatBackward0
    c = c[:, 1:]  # op: slice SliceBackward0
    c = c.t()  # op: t TBackward0
    return c.reshape(-1)  # op: reshape UnsafeViewBackward0


def third(x: Tensor) -> Tensor:
    y = functional.softmax(x, dim=0)  # op: softmax SoftmaxBackward0
    y = y / 2  # op: div DivBackward0
    y = functional.gelu(y)  # op: gelu GeluBackward0
    y = y**2  # op: pow PowBackward0
    y = y.clamp(min=0)  # op: clamp ClampBackward1
    return y.sqrt()  # op: sqrt SqrtBackward0


def loops(y: Tensor) -> Tensor:
    for _ in range(3):
        y = y.sin()  # op: sin*3 SinBackward0*3
    parts = [
        y.sigmoid()  # op: sigmoid*2 SigmoidBackward0*2
        for _ in range(2)
    ]
    return torch.stack(parts).mean()  # op: stack mean StackBackward0 MeanBackward0


def twice(x: Tensor) -> None:
    y = (x.log() * x).sum()  # op: log mul sum LogBackward0 MulBackward0 SumBackward0
    (grad,) = torch.autograd.grad(y, x, create_graph=True)
    grad.square().sum().backward()  # op: square sum PowBackward0 SumBackward0 ones_like


def main() -> None:
    x = torch.full((4, 4), 2.0, requires_grad=True)  # op: full
    w = torch.full((4, 4), 3.0, requires_grad=True)  # op: full
    h = first(x, w)
    h = second(h)
    h = third(h)
    loss = loops(h)
    loss.backward()  # op: ones_like torch::autograd::AccumulateGrad*2
    twice(x)
