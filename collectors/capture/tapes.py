"""What a line collector writes down on each thread: tapes of marks.

A tape holds pairs of integers: a time (Unix ns) and a mark. A mark names a code object, a
line and what happened there. Nothing here needs more than the standard library.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable
from types import CodeType

LINE, ENTER, LEAVE, END = range(4)
"""A line begins; a frame begins or resumes there; a frame ends or yields; the tape ends."""

KIND_SHIFT, CODE_SHIFT = 24, 26
LINE_MASK = (1 << KIND_SHIFT) - 1
FIRST_TIME = 1 << 60
"""Times are above (the year 2006), marks below: so a pair cut in two is noticed."""

WATCHED = 1 << 56
"""Marks of watched functions are above, those of model code below. In theirs, the number by which
a call is identified stands where others have the line."""

CHUNK = 2048
"""Integers that a tape holds as a list, to which one appends at least cost."""


class CodeTable:
    """Model code objects by number; keeps them alive, so that their ids stay theirs."""

    def __init__(self, is_model: Callable[[str], bool]) -> None:
        self.codes: list[CodeType] = []
        self.base: dict[int, int] = {}
        """`id()` of a code object -> its number, shifted to where a mark has it; of watched code
        from `WATCHED` on."""
        self.enter: dict[int, int] = {}
        """The mark of a call's begin, by `id()` of model code."""
        self.leave: dict[int, int] = {}
        """The mark of a call's end, by `id()` of model or watched code."""
        self._is_model = is_model
        self._lock = threading.Lock()

    def watch(self, code: CodeType, place: int) -> None:
        """Give a watched code object its number; whoever asks for it keeps it alive."""
        self._number(code, WATCHED + (place << CODE_SHIFT))

    def _number(self, code: CodeType, base: int) -> None:
        self.leave[id(code)] = base + (LEAVE << KIND_SHIFT)
        self.base[id(code)] = base

    def add(self, code: CodeType) -> int | None:
        """Number of a code object, None where it is neither model code nor watched."""
        if (base := self.base.get(id(code))) is not None:
            return base
        if not self._is_model(code.co_filename):
            return None
        with self._lock:
            if id(code) not in self.base:
                self.codes.append(code)
                base = (len(self.codes) - 1) << CODE_SHIFT
                self.enter[id(code)] = base + (ENTER << KIND_SHIFT) + code.co_firstlineno
                self._number(code, base)
            return self.base[id(code)]


class Budget:
    """How many more marks the tapes of one session may hold together."""

    SHARE = 1 << 16

    def __init__(self, marks: int, check: Callable[[], None] | None = None) -> None:
        self.left = marks
        self.reached = False
        self._lock = threading.Lock()
        self._check = check
        """Called on the recorded thread as often as a tape takes its share."""

    def take(self) -> int:
        """Some more marks for one tape; 0 where none are left."""
        if self._check is not None:
            self._check()
        with self._lock:
            share = min(self.left, self.SHARE)
            self.left -= share
            self.reached |= share == 0
            return share


class Tape:
    """Marks of one thread: the latest as they come, the others packed."""

    def __init__(self, budget: Budget) -> None:
        self.latest: list[int] = []
        """Where marks are written; whoever finds `CHUNK` of them or more calls `pack()`."""
        self.packed = array("q")
        self.thread = threading.get_native_id()
        self._budget = budget
        self._room = 0
        """Length of `packed` at which the budget must be asked for more."""
        self._ended = False
        # a signal's handler may come in between, and end the recording
        self._lock = threading.RLock()

    def pack(self) -> bool:
        """Pack the latest marks; True where nothing more may be written.

        A tape ends where the budget has run out. Its list then stays full, so that whoever
        writes goes on to ask here.
        """
        with self._lock:
            if not self._ended:
                self._ask_for_room()
                self._move()
            if self._ended:
                self.latest.extend([0] * (CHUNK - len(self.latest)))
                del self.latest[CHUNK:]
            return self._ended

    def _ask_for_room(self) -> None:
        while len(self.packed) + len(self.latest) > self._room:
            share = self._budget.take()
            if not share:
                return
            self._room += 2 * share

    def _move(self) -> None:
        marks = self.latest[:]
        del self.latest[: len(marks)]
        room = self._room - len(self.packed)
        self.packed.fromlist(marks[:room])
        if len(marks) > room:
            left_out = (number for number in marks[room:] if number >= FIRST_TIME)
            self.packed.extend((next(left_out, time.time_ns()), END << KIND_SHIFT))
            self._ended = True
