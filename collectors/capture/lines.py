"""Which line of model code ran when, on every thread, without torch.

Python tells when a line begins, and when a frame begins, ends, yields or resumes. So at any
time the innermost model frame of a thread and its line are known: what begins then, runs
there. Foreign code (torch, the standard library, this package) is left out: what it does
belongs to the line that called it.

`sys.monitoring` does it from Python 3.12 on, for all threads, at next to no cost;
`sys.settrace` does it before that, for the thread that starts it and those begun later.
Only the standard library is needed here, whatever the Python.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from neuron_explorer.collectors.capture.line_events import EventLines, monitoring
from neuron_explorer.collectors.capture.line_trace import TracedLines
from neuron_explorer.collectors.capture.tapes import (
    Budget,
    CodeTable,
    Tape,
)
from neuron_explorer.collectors.capture.timelines import Timelines, replay
from neuron_explorer.collectors.capture.watched import Calls, Watch

DEFAULT_BUDGET = 20_000_000
"""Marks of one recording: 16 bytes each, so at most 320 MB."""

BY_EVENTS = monitoring is not None
"""Whether this Python has events that cost next to nothing."""


@dataclass
class Recording:
    """What was written down between a start and a stop."""

    tapes: list[Tape]
    codes: CodeTable
    truncated: bool
    ended_ns: int = field(default_factory=time.time_ns)
    _replayed: Timelines | None = None

    def timelines(self) -> Timelines:
        """What ran when."""
        if self._replayed is None:
            self._replayed = replay(self.tapes, self.codes, self.ended_ns, truncated=self.truncated)
        return self._replayed

    def calls(self) -> list[Calls]:
        """Calls of watched functions."""
        return self.timelines().calls


class LineCollector:
    """Records timelines of model lines between `start()` and `stop()`.

    Args:
        is_model: Whether the code of a file is model code.
        budget: How many marks may be kept; what comes later is left out.
        by_events: Take `sys.monitoring`, else `sys.settrace`.
        watch: Foreign functions whose calls are written down as well.
        check: Called on the recorded threads now and then, every `Budget.SHARE` marks; it may
            end the recording.
    """

    def __init__(
        self,
        is_model: Callable[[str], bool],
        *,
        budget: int = DEFAULT_BUDGET,
        by_events: bool = BY_EVENTS,
        watch: Watch | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._is_model = is_model
        self._check = check
        self._marks = budget
        self._by_events = by_events
        self._watch = watch or Watch(())
        self._running: EventLines | TracedLines | None = None
        self._codes = CodeTable(is_model)
        self._budget = Budget(budget)

    @property
    def active(self) -> bool:
        return self._running is not None

    def start(self) -> None:
        """Begin; does nothing where it has begun.

        Raises:
            UsageError: Other tools hold everything that Python has for this.
        """
        if self._running is not None:
            return
        self._codes, self._budget = CodeTable(self._is_model), Budget(self._marks, self._check)
        for place, function in enumerate(self._watch.functions):
            self._codes.watch(function.code, place)
        self._watch.begin()
        kind = EventLines if self._by_events else TracedLines
        running = kind(self._codes, self._budget, self._watch)
        running.start()
        self._running = running
        _active.add(self)

    def stop(self) -> Recording:
        """End, and hand over what was recorded; nothing where it had not begun."""
        running, self._running = self._running, None
        if running is None:
            return Recording([], self._codes, truncated=False)
        _active.discard(self)
        running.stop()
        for tape in running.tapes:
            tape.pack()
        recording = Recording(running.tapes, self._codes, self._budget.reached)
        self._watch.end(recording.calls)
        return recording

    def abandon(self) -> None:
        """End without a result: a forked child records nothing."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()


_active: weakref.WeakSet[LineCollector] = weakref.WeakSet()


def _abandon_all() -> None:
    for collector in list(_active):
        collector.abandon()
    _active.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
