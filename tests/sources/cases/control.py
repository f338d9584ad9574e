"""Branches, loops, exceptions and with blocks."""

from __future__ import annotations

import torch
from torch import Tensor


def branches(x: Tensor, kind: str) -> Tensor:
    if kind == "a":
        return x.sin()  # op: sin
    elif kind == "b":  # noqa: RET505 - the case
        y = x.cos()  # op: cos
    else:
        y = x.tan()  # op: tan
    return y if kind == "b" else y.neg()  # op: neg


def matching(value: object, x: Tensor) -> Tensor:
    match value:
        case int():
            return x + 1  # op: add
        case str() if bool(x.sum() > 0):  # op: sum gt is_nonzero
            return x - 1  # op: sub
        case _:
            return x * 2  # op: mul


def loops(x: Tensor) -> Tensor:
    for number in range(4):
        if number == 2:
            x = x.abs()  # op: abs
            continue
        x = x + number  # op: add*3
    else:  # noqa: PLW0120 - the case
        x = x.exp()  # op: exp
    while x.sum() < 1000:  # op: sum*2 lt*2 is_nonzero*2
        x = x * 5  # op: mul
    return x


def fails(x: Tensor) -> Tensor:
    y = x.floor()  # op: floor*2
    raise ValueError(float(y.sum()))  # op: sum*2 item*2


def exceptions(x: Tensor) -> Tensor:
    try:
        x = fails(x)
    except ValueError:
        x = x.ceil()  # op: ceil
    else:
        x = x.round()
    finally:
        x = x.square()  # op: square
    try:
        try:
            fails(x)
        finally:
            x.sqrt()  # op: sqrt
    except ValueError as error:
        x = x - len(error.args)  # op: sub
    try:
        x @ torch.ones(3, 3)  # op: ones matmul
    except RuntimeError:
        x = x.sigmoid()  # op: sigmoid
    return x


class Scope:
    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __enter__(self) -> Tensor:
        return self.x.asin()  # op: asin*2

    def __exit__(self, *_: object) -> None:
        self.x.atan()  # op: atan*2


def scopes(x: Tensor) -> Tensor:
    with torch.no_grad():
        x = x.relu()  # op: relu
    with torch.enable_grad(), Scope(x) as y:
        inner = y.tanh()  # op: tanh
    with Scope(x * 0.5) as z, torch.autograd.profiler.record_function("inside"):  # op: mul
        outer = z.erf()  # op: erf
    with torch.autocast("cpu", enabled=False):
        return inner + outer  # op: add


def assertions(x: Tensor) -> Tensor:
    assert bool((x == x).all())  # noqa: PLR0124 # op: eq all is_nonzero
    found = (y := x.log1p()) + y  # op: log1p add
    return found or x  # op: is_nonzero


def main() -> None:
    x = torch.ones(4)  # op: ones
    for kind in "abc":
        branches(x, kind)
    for value in (1, "one", None):
        matching(value, x)
    loops(x)
    exceptions(x)
    scopes(x)
    assertions(torch.ones(1))  # op: ones
