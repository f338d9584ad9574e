"""Pauses of Python's garbage collector: `host/gc` rows on the threads that paid for them."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from array import array
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.capture.companions import Remark
from neuron_explorer.collectors.recorded import RECORDED, recorded_table

LIMIT = 200_000
"""Pauses kept of one window: 10 MB, some seconds of nothing but collections."""

_FIELDS = 6
_recording: weakref.WeakSet[CollectorPauses] = weakref.WeakSet()


class CollectorPauses:
    """Records from start to stop when the collector ran, in which thread, and what it found.

    A row's attributes: `generation` that was collected, objects `collected`, and objects found
    that could not be freed (`uncollectable`).
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._pauses = array("q")
        """Of each pause: begin and end (ns), thread, generation, collected, uncollectable."""
        self._began: int | None = None
        self._missed = 0

    def start(self) -> None:
        """Begin a window."""
        self.stop()
        self._pauses, self._began, self._missed = array("q"), None, 0
        gc.callbacks.append(self._saw)
        _recording.add(self)

    def stop(self) -> None:
        """End it."""
        _recording.discard(self)
        if self._saw in gc.callbacks:
            gc.callbacks.remove(self._saw)

    def _saw(self, phase: str, info: Mapping[str, int]) -> None:
        now = time.time_ns()
        if phase == "start":
            self._began = now
            return
        # a window may begin inside a collection
        began, self._began = self._began, None
        if began is None:
            return
        if len(self._pauses) >= self._limit * _FIELDS:
            self._missed += 1
            return
        found = info["generation"], info["collected"], info["uncollectable"]
        self._pauses.extend((began, now, threading.get_native_id(), *found))

    def rows(self, clock: Alignment) -> pa.Table:
        """One `host/gc` row a pause."""
        pauses, self._pauses = np.frombuffer(self._pauses, np.int64), array("q")
        if not len(pauses):
            return RECORDED.empty_table()
        begin, end, *rest = pauses.reshape(-1, _FIELDS).T
        start = clock.to_torch(begin)
        table = np.column_stack((start, end - begin, *rest))
        return recorded_table([_row(*pause) for pause in table.tolist()])

    def facts(self) -> Mapping[str, object]:
        """That pauses were recorded, so that none means none."""
        return {"gc": True}

    def remarks(self) -> Sequence[Remark]:
        """Pauses beyond the limit."""
        kept = f"only the first {self._limit} were kept"
        return [("gc_pauses_dropped", kept, self._missed)] if self._missed else []


def _row(
    start: int, duration: int, tid: int, generation: int, collected: int, uncollectable: int
) -> dict[str, object]:
    return {
        "role": "host/gc",
        "name": f"gc generation {generation}",
        "start_ns": start,
        "duration_ns": duration,
        "tid": tid,
        "attributes": f'{{"generation":{generation},"collected":{collected},'
        f'"uncollectable":{uncollectable}}}',
    }


def _forget_in_child() -> None:
    """A forked child records nothing."""
    for pauses in list(_recording):
        pauses.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
