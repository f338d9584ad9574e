"""Frames that stop and go on: generators, context managers, coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager

import torch
from torch import Tensor


def batches(x: Tensor) -> Iterator[Tensor]:
    for number in range(3):
        yield x * number  # op: mul*3
        x = x + 1  # op: add*3


def transformed(x: Tensor) -> Iterator[Tensor]:
    yield x.neg()  # op: neg
    yield from batches(x.abs())  # op: abs
    yield x.sign()  # op: sign


def averaging(x: Tensor) -> Generator[Tensor, Tensor, None]:
    while True:
        x = (yield x) * 2 + x.sin()  # op: mul*2 sin*2 add*2


def cleanup(x: Tensor) -> Iterator[Tensor]:
    try:
        yield x.cos()  # op: cos
    finally:
        x.acos()  # op: acos


@contextmanager
def measured(x: Tensor) -> Iterator[Tensor]:
    before = x.sum()  # op: sum
    yield before.exp()  # op: exp
    before.log()  # op: log


async def child(x: Tensor) -> Tensor:
    y = x.tanh()  # op: tanh*2
    await asyncio.sleep(0)
    return y.tan()  # op: tan*2


@asynccontextmanager
async def session(x: Tensor) -> AsyncIterator[Tensor]:
    y = x.erf()  # op: erf
    await asyncio.sleep(0)
    yield y
    y.erfc()  # op: erfc


async def stream(x: Tensor) -> AsyncIterator[Tensor]:
    for _ in range(2):
        await asyncio.sleep(0)
        yield x.floor()  # op: floor*2


async def parent(x: Tensor) -> Tensor:
    first, second = await asyncio.gather(child(x), child(x))
    async with session(first) as opened:
        opened.ceil()  # op: ceil
    async for item in stream(second):
        item.round()  # op: round*2
    return first - second  # op: sub


def main() -> None:
    x = torch.ones(4)  # op: ones
    for batch in transformed(x):
        batch.relu()  # op: relu*5
    average = averaging(x)
    next(average)
    average.send(x)
    average.send(x)
    closing = cleanup(x)
    next(closing)
    del closing
    with measured(x) as value:
        value.sqrt()  # op: sqrt
    asyncio.run(parent(x))
    zipped = [a - b for a, b in zip(batches_again(x), batches_again(x), strict=True)]  # op: sub*2
    zipped[0].trunc()  # op: trunc


def batches_again(x: Tensor) -> Iterator[Tensor]:
    for _ in range(2):
        yield x.square()  # op: square*4
        x = x.sigmoid()  # op: sigmoid*4
