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
        if outermost:
            _moving.moved = {}
        try:
            return swap(self, fn, recurse)
        except RuntimeError as error:
            if _UNSWAPPED not in str(error):
                raise
            _replace(self, fn, _moving.moved or {})
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
