"""Operators, which call no function: the hardest case for a tracer of calls."""

from __future__ import annotations

import torch
from torch import Tensor


def arithmetic(a: Tensor, b: Tensor) -> Tensor:
    c = a + b  # op: add
    c = c - b  # op: sub
    c = c * a  # op: mul
    c = c / 2  # op: div
    c = c**2  # op: pow
    c = -c  # op: neg
    c = c % 3  # op: remainder
    c = c // 2  # op: floor_divide
    return abs(c)  # op: abs


def right_hand(a: Tensor) -> Tensor:
    b = 1 + a  # op: add
    c = 2 * b  # op: mul
    d = 1 - c  # op: rsub
    return 3 / d  # op: reciprocal mul


def in_place(a: Tensor, b: Tensor) -> Tensor:
    a += b  # op: add_
    a -= b  # op: sub_
    a *= b  # op: mul_
    a /= 2  # op: div_
    return a


def comparing(a: Tensor, b: Tensor) -> Tensor:
    low = a < b  # op: lt
    high = a >= b  # op: ge
    same = a == b  # op: eq
    other = a != b  # op: ne
    return (low | same) & (high ^ other)  # op: __or__ __xor__ __and__


def products(a: Tensor, b: Tensor) -> Tensor:
    c = a @ b  # op: matmul
    d = a.T @ c  # op: numpy_T matmul
    return c * d + d * c - c  # op: mul*2 add sub


def indexing(a: Tensor) -> Tensor:
    first = a[0]  # op: select
    rest = a[1:]  # op: slice
    corner = a[:2, 1]  # op: slice select
    a[0] = 1.0  # op: select fill_
    a[1:] *= 2  # op: slice mul_ copy_
    picked = a[a > 0]  # op: gt index
    wide = first[None]  # op: unsqueeze
    return rest.sum() + corner.sum() + picked.sum() + wide.sum()  # op: sum*4 add*3


def main() -> None:
    a, b = torch.full((4, 4), 2.0), torch.full((4, 4), 3.0)  # op: full*2
    arithmetic(a, b)
    right_hand(a)
    in_place(a, b)
    comparing(a, b)
    products(a, b)
    indexing(a)
