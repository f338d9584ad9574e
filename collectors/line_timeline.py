"""Model lines by time and thread, where a capture recorded them, joined to events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from neuron_explorer.collectors.backward_lines import in_backward, waiting_calls
from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints, Running
from neuron_explorer.collectors.interning import Codes
from neuron_explorer.collectors.linking.frames import Frame

_ON_THREADS = ("framework/", "runtime/", "memory/", "host/")
_NOT_RUN = ("framework/device_annotation",)


@dataclass(frozen=True)
class LineChanges:
    """When the innermost model line of one thread changed; sorted by time, Unix ns."""

    start_ns: Ints
    place: Codes
    """Number of the place that runs from then on; below zero where no model code does."""
    entered_ns: Ints
    """When the frame of that place began or was last resumed."""


@dataclass(frozen=True)
class LineTimeline:
    """All that a capture knows of model lines."""

    threads: Mapping[int, LineChanges]
    """By the thread id that the events carry."""
    callers: Sequence[int]
    """Place that called each place; below zero where no model code did. Callers come first."""
    frames: Sequence[Frame]
    """Frame of each place, at its line."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """How it was recorded, for the trace's metadata."""

    def at_start(self, events: Events, tids: Sequence[int | None], base_ns: int) -> Running:
        """The place that ran when each event of a recorded thread began.

        It is that of the last change no later than the event's start: a line's own event
        comes before anything the line does, and a frame's end puts its caller's line back.
        Backward work on a thread that runs no model code has the line that waits for it.

        Args:
            events: The events, of one process.
            tids: Thread id of each track.
            base_ns: Unix time of the events' time 0.
        """
        known = [self.threads.get(tid) if tid is not None else None for tid in tids]
        chosen = events.roles(*_ON_THREADS) & ~events.roles(*_NOT_RUN)
        chosen |= _built(events)
        chosen &= events.start != UNKNOWN
        recorded = np.array([*(k is not None for k in known), False], np.bool_)[events.track]
        backward = in_backward(events)
        chosen &= recorded | backward
        rows = np.flatnonzero(chosen)
        place = np.full(len(rows), -1, np.int32)
        entered = np.zeros(len(rows), np.int64)
        track = events.track[rows]
        for code in np.unique(track).tolist():
            changes, here = known[code], np.flatnonzero(track == code)
            if changes is not None and len(changes.start_ns):
                at = events.start[rows[here]] + base_ns
                last = np.searchsorted(changes.start_ns, at, side="right") - 1
                place[here] = np.where(last >= 0, changes.place[last], -1)
                entered[here] = changes.entered_ns[last] - base_ns
        waited = np.flatnonzero((place < 0) & backward[rows])
        at = events.start[rows[waited]] + base_ns
        place[waited], since = waiting_calls(self.threads, at)
        entered[waited] = since - base_ns
        running = place >= 0
        chosen_rows = rows[running].astype(np.int32)
        return Running(chosen_rows, place[running], entered[running], self.callers, self.frames)


def _built(events: Events) -> Bools:
    """Programs that a device's runtime built for an op; torch.compile says its own lines."""
    built = events.roles("compiler/compile", "compiler/recompile")
    built[events.recorded["stack"].rows] = False
    return built
