"""What a line collector writes down on each thread, and the timeline that follows from it.

A tape holds pairs of integers: a time (Unix ns) and a mark. A mark names a code object, a
line and what happened there. Nothing here needs more than the standard library.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType

LINE, ENTER, LEAVE, END = range(4)
"""A line begins; a frame begins or resumes there; a frame ends or yields; the tape ends."""

KIND_SHIFT, CODE_SHIFT = 24, 26
_LINE_MASK = (1 << KIND_SHIFT) - 1
_KINDS = 3 << KIND_SHIFT
FIRST_TIME = 1 << 60
"""Times are above (the year 2006), marks below: so a pair cut in two is noticed."""

NOWHERE = -1
"""Node of a time at which no model code runs."""

FOREIGN = -1
"""Stands for the number of a code object that is not recorded. Those whose calls are watched
have numbers below it: `FOREIGN - 1 - place`."""


@dataclass(frozen=True)
class Node:
    """A place in a call tree: a line of a frame, and the node of the line that called it."""

    caller: int
    """Number of the calling node, or `NOWHERE`."""
    code: int
    """Number of the code object."""
    line: int


class CodeTable:
    """Model code objects by number; keeps them alive, so that their ids stay theirs."""

    def __init__(self, is_model: Callable[[str], bool]) -> None:
        self.codes: list[CodeType] = []
        self.base: dict[int, int] = {}
        """`id()` of a code object -> its number: of model code, shifted to where a mark has it;
        of watched code below `FOREIGN`."""
        self._is_model = is_model
        self._lock = threading.Lock()

    def watch(self, code: CodeType, place: int) -> None:
        """Give a watched code object its number; whoever asks for it keeps it alive."""
        self.base[id(code)] = FOREIGN - 1 - place

    def add(self, code: CodeType) -> int | None:
        """Number of a code object, None where it is neither model code nor watched."""
        if (base := self.base.get(id(code))) is not None:
            return base
        if not self._is_model(code.co_filename):
            return None
        with self._lock:
            if id(code) not in self.base:
                self.codes.append(code)
                self.base[id(code)] = (len(self.codes) - 1) << CODE_SHIFT
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


class Tape(array):  # type: ignore[type-arg]
    """Marks of one thread. `room` is the length at which it must ask for more."""

    def __new__(cls, _budget: Budget) -> Tape:
        return super().__new__(cls, "q")  # type: ignore[return-value]

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.room = 0
        self.thread = threading.get_native_id()
        self.ended = False

    def full(self, now: int) -> bool:
        """Whether nothing more may be written; ends the tape where the budget has run out."""
        if self.ended:
            return True
        share = self.budget.take()
        self.room += 2 * share
        if not share:
            self.ended = True
            self.extend((now, END << KIND_SHIFT))
        return not share


@dataclass
class ThreadTimeline:
    """Which node ran from when on; the three columns have one place for each change."""

    thread: int
    """Native thread id."""
    start_ns: array[int]
    node: array[int]
    entered_ns: array[int]
    """When the node's frame began or was last resumed, or the recording began; 0 = nowhere."""


@dataclass
class Timelines:
    """All threads of one recording."""

    threads: list[ThreadTimeline] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    codes: list[CodeType] = field(default_factory=list)
    marks: int = 0
    truncated: bool = False
    """The budget ran out: nothing is known of what came later."""


def replay(tapes: list[Tape], codes: CodeTable, *, truncated: bool = False) -> Timelines:
    """Follow every tape from its beginning; tapes are emptied on the way."""
    found = Timelines(codes=codes.codes, truncated=truncated)
    numbers: dict[tuple[int, int], int] = {}
    for tape in tapes:
        found.marks += len(tape) // 2
        found.threads.append(_replay_one(tape, found.nodes, numbers))
        del tape[:]
    return found


class _Replay:
    """The frames that run on one thread while its tape is followed."""

    def __init__(self, thread: int, nodes: list[Node], numbers: dict[tuple[int, int], int]) -> None:
        self.line = ThreadTimeline(thread, array("q"), array("i"), array("q"))
        self._codes: list[int] = []
        self._at: list[int] = []
        """Node of each running frame."""
        self._entered: list[int] = []
        self._nodes = nodes
        self._numbers = numbers

    def apply(self, kind: int, place: int, now: int) -> None:
        """Follow one mark; a place is a code object's shifted number and a line."""
        code = place >> CODE_SHIFT
        if kind == END:
            self._codes, self._at, self._entered = [], [], []
        elif kind == LEAVE:
            # else it began before anything was recorded
            if self._unwind_to(code):
                self._pop()
        elif kind == LINE and self._unwind_to(code):
            self._at[-1] = self._node(place)
        else:
            self._codes.append(code)
            self._entered.append(now)
            self._at.append(NOWHERE)
            self._at[-1] = self._node(place)
        self._note(now)

    def _node(self, place: int) -> int:
        """Number of the node of a place in the innermost frame."""
        caller = self._at[-2] if len(self._at) > 1 else NOWHERE
        number = self._numbers.get((caller, place))
        if number is None:
            number = self._numbers[caller, place] = len(self._nodes)
            self._nodes.append(Node(caller, place >> CODE_SHIFT, place & _LINE_MASK))
        return number

    def _note(self, now: int) -> None:
        self.line.start_ns.append(now)
        self.line.node.append(self._at[-1] if self._at else NOWHERE)
        self.line.entered_ns.append(self._entered[-1] if self._entered else 0)

    def _unwind_to(self, code: int) -> bool:
        """Make the innermost frame one of `code`; False where none is.

        Frames above it have ended unseen, which only a thread that is watched too late shows.
        """
        if self._codes and self._codes[-1] == code:
            return True
        if code not in self._codes:
            return False
        while self._codes[-1] != code:
            self._pop()
        return True

    def _pop(self) -> None:
        del self._codes[-1], self._at[-1], self._entered[-1]


def _replay_one(
    tape: Tape, nodes: list[Node], numbers: dict[tuple[int, int], int]
) -> ThreadTimeline:
    state = _Replay(tape.thread, nodes, numbers)
    position, size = 0, len(tape) - 1
    while position < size:
        now, mark = tape[position], tape[position + 1]
        if now < FIRST_TIME or mark >= FIRST_TIME:
            # a signal came between the two: its handler may have raised
            position += 1
            continue
        position += 2
        state.apply((mark & _KINDS) >> KIND_SHIFT, mark & ~_KINDS, now)
    return state.line
