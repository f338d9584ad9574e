# mypy: disable-error-code="no-any-return, no-untyped-call"
"""Properties, special methods, class methods and subclasses of Tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor


@dataclass
class State:
    x: Tensor

    def __post_init__(self) -> None:
        self.x = self.x.clone()  # op: clone*3

    @property
    def norm(self) -> Tensor:
        return self.x.square().sum()  # op: square*2 sum*2

    @norm.setter
    def norm(self, value: Tensor) -> None:
        self.x = self.x / value  # op: div

    @cached_property
    def average(self) -> Tensor:
        return self.x.mean()  # op: mean

    @classmethod
    def zeros(cls, size: int) -> State:
        return cls(torch.zeros(size))  # op: zeros

    @staticmethod
    def double(x: Tensor) -> Tensor:
        return x * 2  # op: mul*2

    def __call__(self, y: Tensor) -> Tensor:
        return self.x - y  # op: sub*2

    def __add__(self, other: State) -> State:
        return State(self.x + other.x)  # op: add

    def __getitem__(self, index: int) -> Tensor:
        return self.x[index]  # op: select*2

    def __len__(self) -> int:
        return int(self.x.numel() + self.x.sum().item())  # op: sum item

    def __iter__(self) -> Iterator[Tensor]:
        for row in self.x:  # op: unbind
            yield row.neg()  # op: neg*4

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and bool((self.x == other.x).all())  # op: eq all is_nonzero

    __hash__ = None  # type: ignore[assignment]


class Base:
    def run(self, x: Tensor) -> Tensor:
        return x.cos()  # op: cos


class Derived(Base):
    def run(self, x: Tensor) -> Tensor:
        return super().run(x.sin()) * 2  # op: sin mul


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.relu:
            return super().__torch_function__(torch.tanh, types, args, kwargs)  # op: tanh
        return super().__torch_function__(func, types, args, kwargs)


def main() -> None:
    state = State(torch.ones(4))  # op: ones
    state.norm = state.norm
    State.double(state.norm)
    state.average.exp()  # op: exp
    _ = state.average
    other = State.zeros(4)
    State.double(other.x)
    state(other(state.x))
    both = state + other
    both[0].floor()  # op: floor
    both[1].ceil()  # op: ceil
    assert len(both)
    for row in both:
        row.round()  # op: round*4
    assert state != both or state
    Derived().run(state.x)
    torch.relu(state.x.as_subclass(Tagged))
