"""What the roofline asks: the roofs of the chip that did most, and the work as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuron_explorer.tui.data import Ask

GROUPS: Mapping[str, str] = {
    "kernel": "name",
    "op": "op_name",
    "line": "source_file || ':' || source_line",
    "module": "module",
    "phase": "phase",
}
"""What becomes one point, and the SQL of it."""

MOST_POINTS = 400
_ROOFS = """
WITH chosen AS (
    SELECT d.chip, any_value(d.bandwidth_bytes_per_s) AS bandwidth,
        any_value(d.peak_flops) AS peaks, bool_or(d.modelled) AS modelled
    FROM device_chips AS d
    LEFT JOIN devices AS w ON d.rank = w.rank AND d.device = w.device
    WHERE d.chip IS NOT NULL
    GROUP BY d.chip ORDER BY sum(w.work_ns) DESC NULLS LAST, d.chip LIMIT 1
)
SELECT chip, bandwidth, modelled, unnest(map_keys(peaks)) AS dtype,
    unnest(map_values(peaks)) AS peak
FROM chosen ORDER BY peak DESC
"""
_POINTS = """
WITH keyed AS (
    SELECT
        *, {key} AS key,
        coalesce(flops > 0 AND bytes > 0 AND device_time_ns > 0, FALSE) AS placed
    FROM roofline
    WHERE $part = '' OR contains(
        lower(concat_ws(' ', name, op_name, module, source_file || ':' || source_line, phase)),
        lower($part)
    )
)
SELECT
    key, dtype, count(*) AS events,
    CAST(sum(device_time_ns) FILTER (WHERE placed) AS BIGINT) AS time_ns,
    CAST(sum(flops) FILTER (WHERE placed) AS DOUBLE) AS flops,
    CAST(sum(bytes) FILTER (WHERE placed) AS DOUBLE) AS bytes,
    sum(floor_ns) FILTER (WHERE placed)
        / nullif(sum(device_time_ns) FILTER (WHERE placed AND floor_ns IS NOT NULL), 0) AS share,
    mode(bound) AS bound,
    arg_max(rank, device_time_ns) AS rank, arg_max(event_id, device_time_ns) AS event_id,
    arg_max(source_file, device_time_ns) AS source_file,
    arg_max(source_line, device_time_ns) AS source_line,
    sum(sum(device_time_ns) FILTER (WHERE placed)) OVER () AS placed_ns,
    sum(sum(device_time_ns)) OVER () AS whole_ns,
    count(*) FILTER (WHERE bool_or(placed)) OVER () AS groups
FROM keyed GROUP BY key, dtype ORDER BY time_ns DESC NULLS LAST, key, dtype LIMIT $most
"""


@dataclass(frozen=True)
class Roofs:
    """A chip's bandwidth (bytes/s) and peaks (flop/s)."""

    chip: str
    bandwidth: float
    peaks: Mapping[str, float]
    modelled: bool


@dataclass(frozen=True)
class Work:
    """The points with the longest time, and what is not on the plot."""

    points: Sequence[Mapping[str, Any]]
    placed_ns: int
    whole_ns: int
    groups: int
    """All points, shown or not."""


def roofs(ask: Ask) -> Roofs | None:
    """None where no device of the trace is a known chip."""
    rows = [row for row in ask.rows(_ROOFS) if row["bandwidth"] and row["peak"]]
    if not rows:
        return None
    first = rows[0]
    peaks = {row["dtype"]: float(row["peak"]) for row in rows}
    return Roofs(first["chip"], float(first["bandwidth"]), peaks, bool(first["modelled"]))


def work(ask: Ask, group: str, part: str) -> Work:
    """Only work with both flops and bytes has a place on a log-log plot."""
    rows = ask.rows(_POINTS.format(key=GROUPS[group]), {"part": part, "most": MOST_POINTS})
    if not rows:
        return Work((), 0, 0, 0)
    first = rows[0]
    placed = [row for row in rows if row["time_ns"]]
    return Work(placed, first["placed_ns"] or 0, first["whole_ns"] or 0, first["groups"])
