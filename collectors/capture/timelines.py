"""What tapes say: which line of which frame ran when on each thread, and the watched calls.

Nothing here needs more than the standard library.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from types import CodeType

from neuron_explorer.collectors.capture.tapes import (
    CODE_SHIFT,
    END,
    FIRST_TIME,
    KIND_SHIFT,
    LEAVE,
    LINE,
    LINE_MASK,
    WATCHED,
    CodeTable,
    Tape,
)
from neuron_explorer.collectors.capture.watched import CallReplay, Calls

_KINDS = 3 << KIND_SHIFT

NOWHERE = -1
"""Node of a time at which no model code runs."""


@dataclass(frozen=True)
class Node:
    """A place in a call tree: a line of a frame, and the node of the line that called it."""

    caller: int
    """Number of the calling node, or `NOWHERE`."""
    code: int
    """Number of the code object."""
    line: int


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
    calls: list[Calls] = field(default_factory=list)
    """Of watched functions, for each thread that made some."""
    marks: int = 0
    truncated: bool = False
    """The budget ran out: nothing is known of what came later."""


def replay(
    tapes: list[Tape], codes: CodeTable, ended_ns: int, *, truncated: bool = False
) -> Timelines:
    """Follow every tape from its beginning; tapes are emptied on the way.

    Args:
        tapes: Those of one recording, packed.
        codes: What their marks name.
        ended_ns: When the recording ended; calls that ran on end then.
        truncated: Whether the budget ran out.
    """
    found = Timelines(codes=codes.codes, truncated=truncated)
    numbers: dict[tuple[int, int], int] = {}
    for tape in tapes:
        found.marks += len(tape.packed) // 2
        lines, calls = _Replay(tape.thread, found.nodes, numbers), CallReplay(tape.thread)
        _follow(tape.packed, lines, calls)
        found.threads.append(lines.line)
        if len(calls.found.start_ns):
            found.calls.append(calls.finish(ended_ns))
        del tape.packed[:]
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
            self._nodes.append(Node(caller, place >> CODE_SHIFT, place & LINE_MASK))
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


def _follow(marks: array[int], lines: _Replay, calls: CallReplay) -> None:
    position, size = 0, len(marks) - 1
    while position < size:
        now, mark = marks[position], marks[position + 1]
        if now < FIRST_TIME or mark >= FIRST_TIME:
            # a signal came between the two: its handler may have raised
            position += 1
            continue
        position += 2
        kind, place = (mark & _KINDS) >> KIND_SHIFT, mark & ~_KINDS
        if kind == END:
            calls.finish(now)
            lines.apply(kind, place, now)
        elif mark < WATCHED:
            lines.apply(kind, place, now)
        else:
            function = (place - WATCHED) >> CODE_SHIFT
            calls.apply(kind, function, place & LINE_MASK, now)
