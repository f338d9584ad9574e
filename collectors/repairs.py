"""Times that cannot be true, mended or set aside before anything is linked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from neuron_explorer.collectors.events import UNKNOWN, Events, Ints

_DOMINATES = 100
"""A duration this many times the queue's median can be corrupt; a smaller one is not touched."""
_YEAR_NS = 365 * 24 * 3600 * 10**9


@dataclass(frozen=True)
class Repairs:
    """Recorded values of the rows that were changed, by row."""

    raw_start: dict[int, int]
    raw_duration: dict[int, int]


def repair_times(events: Events) -> Repairs:
    """Mend the times of hardware rows in place; returns what they were.

    Hardware rows stamped 0, or a year from the rest, lose their start: they ran, but nobody
    knows when. A row that runs on over whole later rows of its own queue and dwarfs them
    ends where the next one begins, since a queue runs in order.
    """
    raw_start = _set_aside(events)
    return Repairs(raw_start, _shorten(events))


def _set_aside(events: Events) -> dict[int, int]:
    timed = events.start != UNKNOWN
    hardware = events.roles("hardware/") & timed
    if not hardware.any():
        return {}
    middle = np.median(events.start[timed & ~events.roles("meta/")])
    far = np.abs(events.start - middle) > _YEAR_NS
    zero = (events.start == 0) & (events.duration == 0) & (middle > 10**6)
    lost = np.flatnonzero(hardware & (far | zero))
    if not len(lost):
        return {}
    raw = {int(row): int(events.start[row]) for row in lost}
    events.start[lost] = UNKNOWN
    return raw


def _shorten(events: Events) -> dict[int, int]:
    rows = np.flatnonzero(
        events.roles("hardware/") & (events.start != UNKNOWN) & (events.duration != UNKNOWN)
    )
    suspects = _overrunning(events, rows)
    raw = {}
    for row, fixed in suspects:
        raw[row] = int(events.duration[row])
        events.duration[row] = fixed
    return raw


def _overrunning(events: Events, rows: Ints) -> list[tuple[int, int]]:
    """(row, duration up to the next start) of rows that cannot have run that long."""
    queue = ["device", "stream", "track"]
    ends_next = (pl.col("start") + pl.col("duration")).shift(-1).over(queue)
    until_next = pl.col("start").shift(-1).over(queue) - pl.col("start")
    frame = (
        pl.DataFrame(
            {
                "row": rows,
                "start": events.start[rows],
                "duration": events.duration[rows],
                "device": events.device[rows],
                "stream": events.stream[rows],
                "track": events.track[rows],
            }
        )
        .sort("start", "row")
        .with_columns(
            ends_next.alias("ends_next"),
            until_next.alias("until_next"),
            pl.col("duration").median().over(queue).alias("median"),
        )
        .filter(
            (pl.col("start") + pl.col("duration") > pl.col("ends_next"))
            & (pl.col("duration") > _DOMINATES * pl.col("median").clip(lower_bound=1))
            & (pl.col("duration") > _DOMINATES * pl.col("until_next").clip(lower_bound=1))
        )
    )
    return list(frame.select("row", "until_next").iter_rows())
