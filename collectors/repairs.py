"""Times that cannot be true, mended or set aside before anything is linked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from neuron_explorer.collectors.events import UNKNOWN, Events, Places

_DOMINATES = 100
"""A duration this many times the queue's median can be corrupt; a smaller one is not touched."""
_SAMPLE = 100_000
_YEAR_NS = 365 * 24 * 3600 * 10**9


@dataclass(frozen=True)
class Repairs:
    """Recorded values of the rows that were changed, by row."""

    raw_start: dict[int, int]
    raw_duration: dict[int, int]


def repair_times(events: Events, places: Places) -> Repairs:
    """Mend the times of hardware rows in place; returns what they were.

    Hardware rows stamped 0, or a year from the rest, lose their start: they ran, but nobody
    knows when. A row that runs on over whole later rows of its own queue and dwarfs them
    ends where the next one begins, since a queue runs in order.
    """
    raw_start = _set_aside(events)
    return Repairs(raw_start, _shorten(events, places))


def _set_aside(events: Events) -> dict[int, int]:
    timed = np.flatnonzero((events.start != UNKNOWN) & ~events.roles("meta/"))
    work = timed[events.roles("hardware/")[timed]]
    if not len(work):
        return {}
    sample = timed[:: max(1, len(timed) // _SAMPLE)]
    start, middle = events.start[work], np.median(events.start[sample])
    zero = (start == 0) & (events.duration[work] == 0) & (middle > 10**6)
    lost = work[zero | (np.abs(start - middle) > _YEAR_NS)]
    if not len(lost):
        return {}
    raw = {int(row): int(events.start[row]) for row in lost}
    events.start[lost] = UNKNOWN
    return raw


def _shorten(events: Events, places: Places) -> dict[int, int]:
    raw = {}
    for row, fixed in _overrunning(events, places):
        raw[row] = int(events.duration[row])
        events.duration[row] = fixed
    return raw


def _overrunning(events: Events, places: Places) -> list[tuple[int, int]]:
    """(row, duration up to the next start) of rows that cannot have run that long."""
    timed = (events.start != UNKNOWN) & (events.duration != UNKNOWN)
    chosen = (events.roles("hardware/") & timed)[places.rows]
    rows, queue = places.rows[chosen], ["device", "stream"]
    ends_next = (pl.col("start") + pl.col("duration")).shift(-1).over(queue)
    until_next = pl.col("start").shift(-1).over(queue) - pl.col("start")
    frame = (
        pl.DataFrame(
            {
                "row": rows,
                "start": events.start[rows],
                "duration": events.duration[rows],
                "device": places.device[chosen],
                "stream": places.stream[chosen],
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
