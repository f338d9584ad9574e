"""`@profile()`: a session around each call of a function, of whatever kind it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar

from neuron_explorer.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
Session = AbstractContextManager[Any]


def decorated(session: Session, function: F) -> F:
    """The function, recorded until it has ended.

    A call of a coroutine or a generator function only makes what runs later, so the session
    is opened when that begins to run.

    Raises:
        UsageError: It is an async generator, of which nobody can say when it runs.
    """
    if inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{function.__qualname__} is an async generator, which cannot be decorated",
            hint="open `with profile():` around the loop that reads it",
        )
    around: Any = _call
    if inspect.iscoroutinefunction(function):
        around = _coroutine
    elif inspect.isgeneratorfunction(function):
        around = _generator
    recorded: F = around(session, function)
    return recorded


def _call(session: Session, function: F) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with session:
            return function(*args, **kwargs)

    return call


def _coroutine(session: Session, function: F) -> Callable[..., Any]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        with session:
            return await function(*args, **kwargs)

    return run


def _generator(session: Session, function: F) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with session:
            return (yield from function(*args, **kwargs))

    return run
