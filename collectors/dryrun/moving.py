"""Modules that move to the device while a profiler watches.

A moved module keeps its parameters: PyTorch swaps what is behind them. It cannot where a
profiler that records shapes has seen a parameter, for that holds a weak reference. Then the
module gets a new parameter, as on every device whose tensors are of a type of their own; an
optimizer has to be made after the move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

_UNSWAPPED = "Couldn't swap"
_Moved = dict[int, tuple[torch.Tensor, torch.Tensor]]


class _Moving(threading.local):
    moved: _Moved | None = None


_moving = _Moving()


def allow_watched_moves() -> None:
    """Let `Module.to` replace what it cannot swap."""
    swap: Callable[..., Any] = torch.nn.Module._apply

    def apply(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> Any:  # noqa: FBT001, FBT002 - PyTorch calls it so
        outermost = _moving.moved is None
        # one for all modules of the outermost call: a tied parameter is moved once
        moved = _moving.moved = {} if _moving.moved is None else _moving.moved
        before = {
            key: (parameter.__class__, parameter.__dict__)
            for key, parameter in self._parameters.items()
            if parameter is not None
        }
        last: list[tuple[torch.Tensor, torch.Tensor]] = []

        def noting(tensor: torch.Tensor) -> torch.Tensor:
            last[:] = [(tensor, fn(tensor))]
            return last[0][1]

        def again(tensor: torch.Tensor) -> torch.Tensor:
            """What was moved before the swap failed is not moved twice."""
            return last[0][1] if last and last[0][0] is tensor else fn(tensor)

        try:
            return swap(self, noting, recurse)
        except RuntimeError as error:
            if _UNSWAPPED not in str(error):
                raise
            # PyTorch has swapped class and attributes by then, though not the memory
            failed = str(error).rpartition(".")[2]
            parameter: Any = self._parameters[failed]
            parameter.__class__, parameter.__dict__ = before[failed]
            _replace(self, again, moved)
            return self
        finally:
            if outermost:
                _moving.moved = None

    torch.nn.Module._apply = apply  # type: ignore[method-assign]


def _replace(module: torch.nn.Module, fn: Callable[..., Any], moved: _Moved) -> None:
    """Give a module, whose children have moved, new parameters; tied ones stay tied."""
    for name, old in module._parameters.items():
        if old is not None:
            if id(old) not in moved:
                # the old one is kept until all have moved, so that its id stays its own
                moved[id(old)] = (old, _moved_parameter(old, fn))
            module._parameters[name] = moved[id(old)][1]  # type: ignore[assignment]
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)


def _moved_parameter(old: torch.nn.Parameter, fn: Callable[..., Any]) -> torch.Tensor:
    with torch.no_grad():
        value = fn(old)
        stays = value is old
        if stays:
            return old
        new = torch.nn.Parameter(value, old.requires_grad)
        if old.grad is not None:
            new.grad = fn(old.grad)
    return new
