"""Lines of backward work on autograd's own threads: there the call of `backward()` is not seen.

A device's backward runs on a thread of its own while the thread that called it waits. What has a
forward takes that line later; the rest (gradient accumulation) takes the waiting call's, as it
does on the CPU, where both are one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.interning import Codes

if TYPE_CHECKING:
    from neuron_explorer.collectors.line_timeline import LineChanges

Rows = npt.NDArray[np.intp]


def in_backward(events: Events) -> Bools:
    """Which rows begin while a backward function runs on their thread."""
    found = np.zeros(len(events), np.bool_)
    functions = events.roles("framework/autograd") & (events.start != UNKNOWN)
    functions &= events.duration != UNKNOWN
    started = events.start != UNKNOWN
    for track in np.unique(events.track[functions]).tolist():
        here = np.flatnonzero(functions & (events.track == track))
        here = here[np.argsort(events.start[here], kind="stable")]
        ends = np.maximum.accumulate(events.end(here))
        rows = np.flatnonzero(started & (events.track == track))
        last = np.searchsorted(events.start[here], events.start[rows], side="right") - 1
        found[rows] = (last >= 0) & (events.start[rows] <= ends[last])
    return found


def waiting_calls(threads: Mapping[int, LineChanges], at: Ints) -> tuple[Codes, Ints]:
    """The place that runs at each time, where only one thread runs model code; else -1.

    Args:
        threads: Recorded lines by thread.
        at: Times, Unix ns.

    Returns:
        Place, and when its frame was entered (Unix ns), of each time.
    """
    place, entered = np.full(len(at), -1, np.int32), np.zeros(len(at), np.int64)
    running = np.zeros(len(at), np.int32)
    for changes in threads.values():
        if not len(changes.start_ns):
            continue
        last = np.searchsorted(changes.start_ns, at, side="right") - 1
        found = np.where(last >= 0, changes.place[last], -1)
        runs = found >= 0
        running += runs
        place[runs], entered[runs] = found[runs], changes.entered_ns[last][runs]
    place[running != 1] = -1
    return place, entered
