"""Random numbers of the device: each op draws from a seed that it took when it was submitted.

So they depend on the order of the script alone, not on when a queue gets to an op, and the
host's own generator is left as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import torch

_global = threading.Lock()
aten = torch.ops.aten


def is_random(func: Any) -> bool:
    """Whether an op draws random numbers."""
    return torch.Tag.nondeterministic_seeded in func.tags


class Generator:
    """The device's generator: hands out seeds."""

    def __init__(self) -> None:
        self._state = torch.Generator()

    def manual_seed(self, seed: int) -> None:
        self._state.manual_seed(seed)

    def seed(self) -> int:
        return self._state.seed()

    def initial_seed(self) -> int:
        return self._state.initial_seed()

    def get_state(self) -> torch.Tensor:
        return self._state.get_state()

    def set_state(self, state: torch.Tensor) -> None:
        self._state.set_state(state)

    def next_seed(self) -> int:
        """A seed for one op."""
        drawn = torch.empty((), dtype=torch.int64).random_(generator=self._state)
        return int(drawn)


def draw(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], seed: int) -> Any:
    """Run a random op on host tensors with random numbers of its own."""
    generator = torch.Generator().manual_seed(seed)
    if func is aten.native_dropout.default:
        return _dropout(*args, **kwargs, generator=generator)
    seeded = _seeded(func)
    if seeded is not None:
        if kwargs.get("generator") is None:
            kwargs = {**kwargs, "generator": generator}
        return seeded(*args, **kwargs)
    # an op without a generator of its own draws from the process's, which is put back
    with _global, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return func(*args, **kwargs)


def _seeded(func: Any) -> Any:
    """The overload of an op that takes a generator; None where there is none."""
    if any(argument.name == "generator" for argument in func._schema.arguments):
        return func
    packet, overload = func.overloadpacket, func._schema.overload_name
    wanted = f"{overload}_generator" if overload else "generator"
    return getattr(packet, wanted) if wanted in packet.overloads() else None


def _dropout(
    values: torch.Tensor,
    p: float,
    train: bool | None = None,  # noqa: FBT001 - as the op has it
    *,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    if train is False:
        return values.clone(), torch.ones_like(values, dtype=torch.bool)
    mask = torch.empty_like(values, dtype=torch.bool).bernoulli_(1 - p, generator=generator)
    return values * mask * (0.0 if p == 1 else 1 / (1 - p)), mask
