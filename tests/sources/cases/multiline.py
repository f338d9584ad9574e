"""Expressions over several lines: each part runs at its own line."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def nested_calls(x: Tensor) -> Tensor:
    return torch.relu(  # op: relu
        torch.tanh(  # op: tanh add
            x * 2  # op: mul
        )
        + torch.sigmoid(  # op: sigmoid
            x
        )
    )


def chained(x: Tensor) -> Tensor:
    return (
        x.abs()  # op: abs
        .sqrt()  # op: sqrt
        .unsqueeze(0)  # op: unsqueeze
        .mean(  # op: mean
            dim=-1
        )
        .exp()  # op: exp
    )


def arguments(x: Tensor) -> Tensor:
    return functional.linear(  # op: linear
        x + 1,  # op: add
        x.t(),  # op: t
        bias=x[0],  # op: select
    )


def collections(x: Tensor) -> list[Tensor]:
    found = {
        "cos": torch.cos(x),  # op: cos
        "sin": torch.sin(x),  # op: sin
        "both": [
            torch.floor(x),  # op: floor
            torch.ceil(x),  # op: ceil
        ],
    }
    stacked = torch.stack(  # op: stack
        [
            found["cos"],  # type: ignore[list-item]
            torch.neg(  # op: neg
                found["sin"]  # type: ignore[arg-type]
            ),
        ]
    )
    return [stacked]


def conditional(x: Tensor, flag: bool) -> Tensor:  # noqa: FBT001 - a case of its own
    return (
        torch.log1p(  # op: log1p
            x.clamp(min=0)  # op: clamp
        )
        if flag
        else torch.erf(x)
    )


def long_sum(a: Tensor, b: Tensor) -> Tensor:
    total = (
        torch.round(a)  # op: round add sub
        + torch.trunc(b)  # op: trunc
        - torch.square(a)  # op: square
    )
    return total.where(
        a  # op: gt
        > b,
        torch.maximum(a, b),  # op: maximum
    )


def main() -> None:
    x = torch.ones(4, 4)  # op: ones
    nested_calls(x)
    chained(x)
    arguments(x)
    collections(x)
    conditional(x, flag=True)
    long_sum(
        x,
        torch.zeros(4, 4),  # op: zeros
    )
