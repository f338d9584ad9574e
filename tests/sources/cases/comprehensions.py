"""Comprehensions and generator expressions: frames of their own before Python 3.12."""

from __future__ import annotations

import torch
from torch import Tensor


def lists(items: list[Tensor]) -> list[Tensor]:
    doubled = [x * 2 for x in items]  # op: mul*3
    shifted = [
        x + 1  # op: add*2
        for x in items
        if x.sum() > 0  # op: sum*3 gt*3
    ]
    nested = [y.neg() for x in items for y in (x, x.abs())]  # op: abs*3 neg*6
    return doubled + shifted + nested


def mappings(items: list[Tensor]) -> dict[int, Tensor]:
    return {
        number: x.cos()  # op: cos*3 sub*3
        - x.sin()  # op: sin*3
        for number, x in enumerate(items)
    }


def generators(items: list[Tensor]) -> Tensor:
    total = sum((x.exp() for x in items), torch.zeros(4))  # op: exp*3 add*3 zeros
    parts = torch.stack(  # op: stack
        list(  # noqa: C400 - the case
            x.sqrt()  # op: sqrt*3
            for x in items
        )
    )
    largest = max(x.max() for x in items)  # op: max*3 gt*2
    return parts + total + largest  # op: add*2


def sets(items: list[Tensor]) -> set[float]:
    return {x.mean().item() for x in items}  # op: mean*3 item*3


def main() -> None:
    items = [torch.full((4,), float(n)) for n in range(3)]  # op: full*3
    lists(items)
    mappings(items)
    generators(items)
    sets(items)
    lazy = (x.tanh() for x in items)  # op: tanh*3
    for x in lazy:
        x.relu()  # op: relu*3
