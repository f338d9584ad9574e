"""Calls of a few chosen foreign functions, with their begin and end on each thread.

Foreign code is not recorded, but some of its functions say what the lines do not: which
module runs, that a forward runs again. Nothing here needs more than the standard library.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType

from neuron_explorer.collectors.capture.tapes import FIRST_TIME, Budget, Tape

Identify = Callable[[FrameType, bool], int]
"""Number of a call, above zero, from its frame; told whether it is the outermost one of its
function on the thread."""

Enter = Callable[[int, FrameType], None]
Leave = Callable[[int], None]

UNIDENTIFIED = 0
_SHIFT = 4


@dataclass(frozen=True)
class WatchedFunction:
    """A function whose calls are written down."""

    code: CodeType
    identify: Identify


class CallTape(Tape):
    """Pairs of a time and what happened: a call's `number << 4 | function`, or `~function`."""

    def __init__(self, budget: Budget, functions: int) -> None:
        super().__init__(budget)
        self.running = [0] * functions
        """How many calls of each function run on the thread."""

    def __new__(cls, budget: Budget, _functions: int) -> CallTape:
        return super().__new__(cls, budget)  # type: ignore[return-value]


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
    """Writes down the calls of some functions, for whoever traces the threads.

    A recorder calls `begin()` and `end()` around a window, `enter()` and `leave()` in it.
    """

    def __init__(self, functions: Sequence[WatchedFunction]) -> None:
        self.functions = tuple(functions)
        self.failures: list[str] = []
        """What went wrong while calls were identified."""
        self.enter, self.leave = self._callbacks(Budget(0))
        self._tapes: list[CallTape] = []
        self._ended_ns = 0

    def begin(self, budget: Budget) -> None:
        """Forget what was, and write at most as much as the budget has."""
        self.failures.clear()
        self._tapes = []
        self.enter, self.leave = self._callbacks(budget)

    def end(self) -> None:
        self._ended_ns = time.time_ns()

    def _callbacks(self, budget: Budget) -> tuple[Enter, Leave]:
        """What to do where a call begins and ends; neither ever raises."""
        local = threading.local()

        def first() -> CallTape:
            tape = CallTape(budget, len(self.functions))
            self._tapes.append(tape)
            local.tape = tape
            return tape

        return self._enter(local, first), _leave(local, first)

    def _enter(self, local: threading.local, first: Callable[[], CallTape]) -> Enter:
        # these are hot: all they touch is in local variables
        time_ns, failures = time.time_ns, self.failures
        identify = [function.identify for function in self.functions]

        def enter(function: int, frame: FrameType) -> None:
            try:
                tape = local.tape
            except AttributeError:
                tape = first()
            running = tape.running
            try:
                number = identify[function](frame, not running[function])
            except Exception as error:  # noqa: BLE001 - the job goes on, the call has no name
                failures.append(f"{type(error).__name__}: {error}")
                number = UNIDENTIFIED
            running[function] += 1
            now = time_ns()
            if len(tape) < tape.room or not tape.full(now):
                tape.append(now)
                tape.append(number << _SHIFT | function)

        return enter

    def take(self) -> list[Calls]:
        """All calls since `begin()`, by thread; empties the tapes, so it can be asked once."""
        tapes, self._tapes = self._tapes, []
        return [_follow(tape, self._ended_ns) for tape in tapes]


def _leave(local: threading.local, first: Callable[[], CallTape]) -> Leave:
    time_ns = time.time_ns

    def leave(function: int) -> None:
        now = time_ns()
        try:
            tape = local.tape
        except AttributeError:
            tape = first()
        running = tape.running
        if running[function]:
            # else it began unseen
            running[function] -= 1
            if len(tape) < tape.room or not tape.full(now):
                tape.append(now)
                tape.append(~function)

    return leave


def _follow(tape: CallTape, ended_ns: int) -> Calls:
    found = Calls(tape.thread)
    running: list[int] = []
    size = len(tape) - 1
    if tape.ended:
        # the budget ran out: the last pair says when, and nothing is known of what came later
        size -= 2
        ended_ns = tape[-2]
    position = 0
    while position < size:
        now, mark = tape[position], tape[position + 1]
        if now < FIRST_TIME or mark >= FIRST_TIME:
            # a signal came between the two: its handler may have raised
            position += 1
            continue
        position += 2
        if mark >= 0:
            running.append(_begin(found, now, mark, running[-1] if running else -1))
        else:
            _end(found, now, ~mark, running)
    for place in running:
        found.end_ns[place] = ended_ns
    return found


def _begin(found: Calls, now: int, mark: int, caller: int) -> int:
    found.start_ns.append(now)
    found.end_ns.append(now)
    found.function.append(mark & ((1 << _SHIFT) - 1))
    found.number.append(mark >> _SHIFT)
    found.caller.append(caller)
    return len(found.start_ns) - 1


def _end(found: Calls, now: int, function: int, running: list[int]) -> None:
    """End the innermost call of a function, and those inside it that ended unseen."""
    if any(found.function[place] == function for place in running):
        place = -1
        while place < 0 or found.function[place] != function:
            place = running.pop()
            found.end_ns[place] = now
