# mypy: disable-error-code="no-any-return, no-untyped-call"
"""Lambdas, closures, decorators, partials: functions that are made while running."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Unary = Callable[[Tensor], Tensor]


def logged(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Tensor:
        before = args[0].sum()  # op: sum*2
        return function(*args, **kwargs) + before  # op: add*2

    return wrapper


def scaled(factor: float) -> Callable[[Unary], Unary]:
    def decorate(function: Unary) -> Unary:
        def wrapper(x: Tensor) -> Tensor:
            return function(x * factor) - 1  # op: mul sub

        return wrapper

    return decorate


@logged
def plain(x: Tensor) -> Tensor:
    return x.cos()  # op: cos


@logged
@scaled(3.0)
def stacked(x: Tensor) -> Tensor:
    return x.sin()  # op: sin


@torch.no_grad()
def without_grad(x: Tensor) -> Tensor:
    y = x.exp()  # op: exp
    return y * y  # op: mul


@torch.inference_mode()
def inference(x: Tensor) -> Tensor:
    return x.log1p() / 2  # op: log1p div


def counter(x: Tensor) -> Callable[[], Tensor]:
    total = x.clone()  # op: clone

    def step() -> Tensor:
        nonlocal total
        total = total + x  # op: add*2
        return total.tanh()  # op: tanh*2

    return step


def outer(x: Tensor) -> Tensor:
    def middle(y: Tensor) -> Tensor:
        def inner(z: Tensor) -> Tensor:
            return z.abs() * x  # op: abs mul

        return inner(y.neg()) + y  # op: neg add

    return middle(x.sqrt())  # op: sqrt


def main() -> None:
    x = torch.ones(4)  # op: ones
    plain(x)
    stacked(x)
    without_grad(x)
    inference(x)
    step = counter(x)
    step()
    step()
    outer(x)
    square: Unary = lambda t: t * t  # noqa: E731 # op: mul
    square(x)
    apply = functools.partial(torch.add, x)
    apply(x)  # op: add
    list(map(lambda t: t.floor(), [x, x]))  # noqa: C417 # op: floor*2
    sorted([x, x], key=lambda t: float(t.sum()))  # op: sum*2 item*2
    two_lines: Unary = lambda t: (  # noqa: E731
        t.ceil()  # op: ceil add
        + t.round()  # op: round
    )
    two_lines(x)
