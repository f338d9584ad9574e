"""Statements outside of any function, and a class body that computes."""

from __future__ import annotations

import torch

x = torch.ones(4)  # op: ones
y = x * 2  # op: mul
for number in range(3):
    y = y + number  # op: add*3
if y.sum() > 0:  # op: sum gt is_nonzero
    y = y.exp()  # op: exp
table = [
    torch.full((2,), 1.0),  # op: full
    torch.arange(2) / 2,  # op: arange div
]


class Constants:
    half = torch.zeros(4).cos()  # op: zeros cos
    scaled = (
        half  # op: mul
        * 0.5
    ).sin()  # op: sin


def defaults(
    a: torch.Tensor = torch.eye(2),  # noqa: B008 # op: eye
    b: torch.Tensor = x - 1,  # op: sub
) -> torch.Tensor:
    return a @ b[:2]  # op: slice matmul


def main() -> None:
    defaults()
