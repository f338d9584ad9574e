"""Python's clock against torch's: marks that both stamp, and what they say."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from torch._C._profiler import _RecordFunctionFast

from neuron_explorer.collectors.events import Ints

MARK = "neuron_explorer.clock"
"""Name of the events that the marks leave in a recording."""

_MARKS_A_GROUP = 5
"""The first one pays for first calls; the tightest counts."""


@dataclass(frozen=True)
class Alignment:
    """What to add to Python's times to get torch's, and how far off that may be."""

    at_ns: tuple[int, ...]
    offset_ns: tuple[int, ...]
    """At each of those times; between them it changes evenly."""
    error_ns: int | None
    """None where no mark was found again: then nothing is known."""

    def to_torch(self, times: Ints) -> Ints:
        if not any(self.offset_ns):
            return times
        return times + np.interp(times, self.at_ns, self.offset_ns).astype(np.int64)


class ClockMarks:
    """Marks set while torch records."""

    def __init__(self) -> None:
        self._groups: list[list[tuple[int, int]]] = []
        """Python's time just before and just after torch stamped each mark."""

    def set(self) -> None:
        """Set a group of marks; some 10 us."""
        group = []
        for _ in range(_MARKS_A_GROUP):
            mark = _RecordFunctionFast(MARK)
            before = time.time_ns()
            mark.__enter__()
            after = time.time_ns()
            mark.__exit__(None, None, None)
            group.append((before, after))
        self._groups.append(group)

    def align(self, stamps: list[int]) -> Alignment:
        """What torch's stamps of the same marks, in order, say of the two clocks.

        Torch stamps a mark between Python's two times, so each mark gives the offset
        between two bounds; those of one group hold at one time, so the narrowest bounds count.
        """
        if not stamps or len(stamps) != sum(map(len, self._groups)):
            return Alignment((0,), (0,), None)
        waiting = sorted(stamps)
        at, offsets, errors = [], [], []
        for group in self._groups:
            here, waiting = waiting[: len(group)], waiting[len(group) :]
            pairs = zip(here, group, strict=True)
            bounds = [(stamp - after, stamp - before) for stamp, (before, after) in pairs]
            low, high = max(b[0] for b in bounds), min(b[1] for b in bounds)
            if low > high:
                low, high = min(bounds, key=lambda b: b[1] - b[0])
            offset = 0 if low <= 0 <= high else (low + high) // 2
            at.append(group[0][0])
            offsets.append(offset)
            errors.append(max(offset - low, high - offset))
        return Alignment(tuple(at), tuple(offsets), max(errors))
