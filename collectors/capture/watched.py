"""Calls of a few chosen foreign functions, with their begin and end on each thread.

Foreign code is not recorded, but some of its functions say what the lines do not: which
module runs, that a forward runs again. Nothing here needs more than the standard library.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from neuron_explorer.collectors.capture.tapes import LEAVE, LINE_MASK

Identify = Callable[[object], int]
"""Number of a call, above zero, from its first argument; at most `LINE_MASK`."""

UNIDENTIFIED = 0


@dataclass(frozen=True)
class WatchedFunction:
    """A function whose calls are written down."""

    code: CodeType
    identify: Identify
    delegates: bool = False
    """Whether all it does is to call a method of its first argument: where calls can be seen,
    that one tells the argument at less cost than the function's frame."""


@dataclass
class Calls:
    """Calls of one thread in the order in which they began; one place in each column."""

    thread: int
    """Native thread id."""
    start_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    """For a call that ran on when the recording ended, that time."""
    function: array[int] = field(default_factory=lambda: array("i"))
    number: array[int] = field(default_factory=lambda: array("q"))
    """What the call was identified by, or `UNIDENTIFIED`."""
    caller: array[int] = field(default_factory=lambda: array("q"))
    """Place of the innermost watched call around it; -1 = none."""


class Watch:
    """Functions whose calls are to be written down by whoever traces the threads.

    Args:
        functions: Those functions.
        known: Numbers by the `id()` of first arguments, as far as `identify` need not be asked;
            it may change at any time.
    """

    def __init__(
        self, functions: Sequence[WatchedFunction], known: Mapping[int, int] | None = None
    ) -> None:
        self.functions = tuple(functions)
        self.known = {} if known is None else known
        self.failures: list[str] = []
        """What went wrong while calls were identified."""
        self._calls: Callable[[], Iterable[Calls]] = tuple

    def begin(self) -> None:
        """Forget what was."""
        self.failures.clear()
        self._calls = tuple

    def end(self, calls: Callable[[], Iterable[Calls]]) -> None:
        """Take what the recorder has of the window that has ended."""
        self._calls = calls

    def number(self, function: int, owner: object) -> int:
        """Number of a call by its first argument; never raises."""
        known = self.known.get(id(owner))
        if known is not None:
            return known
        try:
            return self.functions[function].identify(owner) & LINE_MASK
        except Exception as error:  # noqa: BLE001 - the job goes on, the call has no name
            self.failures.append(f"{type(error).__name__}: {error}")
            return UNIDENTIFIED

    def take(self) -> list[Calls]:
        """All calls since `begin()`, by thread; can be asked once."""
        calls, self._calls = self._calls, tuple
        return list(calls())


class CallReplay:
    """The watched calls that run on one thread while its tape is followed."""

    def __init__(self, thread: int) -> None:
        self.found = Calls(thread)
        self._running: list[int] = []

    def apply(self, kind: int, function: int, number: int, now: int) -> None:
        """Follow one mark."""
        if kind == LEAVE:
            self._end(function, now)
            return
        found = self.found
        found.caller.append(self._running[-1] if self._running else -1)
        self._running.append(len(found.start_ns))
        found.start_ns.append(now)
        found.end_ns.append(now)
        found.function.append(function)
        found.number.append(number)

    def _end(self, function: int, now: int) -> None:
        """End the innermost call of a function, and those inside it that ended unseen."""
        if any(self.found.function[place] == function for place in self._running):
            place = -1
            while place < 0 or self.found.function[place] != function:
                place = self._running.pop()
                self.found.end_ns[place] = now

    def finish(self, now: int) -> Calls:
        """Nothing is known of what comes later."""
        for place in self._running:
            self.found.end_ns[place] = now
        self._running.clear()
        return self.found


def first_argument(frame: FrameType) -> object:
    """Value of a frame's first argument, `self` in a method; None where there is none.

    Before Python 3.13 `f_locals` keeps all local values alive until the frame ends, or its next
    trace event comes: 3.12 has another way, 3.11 must leave frames alone that it does not trace.
    """
    code = frame.f_code
    if not code.co_argcount:
        return None
    name = code.co_varnames[0]
    if _get_variable is None:
        return frame.f_locals.get(name)
    try:
        return _get_variable(frame, name.encode())
    except NameError:
        return None


_PYTHON = tuple(sys.version_info[:2])


def _variable_getter() -> Any:
    # 3.13 has a light f_locals of its own, and 3.11 knows no other way
    if _PYTHON != (3, 12):
        return None
    getter = ctypes.pythonapi.PyFrame_GetVarString
    getter.argtypes, getter.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.py_object
    return getter


_get_variable = _variable_getter()
_LIGHT_LOCALS = _PYTHON >= (3, 12)


def may_be_read(frame: FrameType) -> bool:
    """Whether a frame's variables can be looked at without changing what the job sees of them."""
    return _LIGHT_LOCALS or frame.f_trace is not None
