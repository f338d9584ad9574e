"""What the memory screen asks: the level of a device over time, and who holds its peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuron_explorer.tui.data import Ask

_DEVICES = """
SELECT
    rank, device, count(*) AS events, min(start_ns) AS first_ns, max(start_ns) AS last_ns,
    max(live_bytes) AS peak_bytes, min(live_bytes) AS least_bytes,
    arg_min(start_ns, (-live_bytes, start_ns, event_id)) AS peak_ns,
    arg_min(event_id, (-live_bytes, start_ns, event_id)) AS peak_id,
    arg_min(op_id, (-live_bytes, start_ns, event_id)) AS peak_op_id,
    arg_min(live_bytes - alloc_bytes, (start_ns, event_id)) AS before_bytes,
    bool_or(live_is_relative) AS is_relative
FROM allocations GROUP BY rank, device ORDER BY device = 'cpu', peak_bytes DESC, rank, device
"""
_LEVELS = """
SELECT
    CAST((start_ns - $first_ns) // $cell_ns AS INTEGER) AS col, max(live_bytes) AS most,
    arg_max(live_bytes, (start_ns, event_id)) AS last
FROM allocations WHERE rank = $rank AND device = $device GROUP BY ALL ORDER BY col
"""
_HOLDERS = """
SELECT
    source_file, source_line, count(*) AS tensors, CAST(sum(alloc_bytes) AS BIGINT) AS bytes,
    max(alloc_bytes) AS largest_bytes, mode(phase) AS phase,
    arg_max(module, alloc_bytes) AS module, arg_max(op_name, alloc_bytes) AS op_name,
    arg_max(op_id, alloc_bytes) AS op_id, $rank AS rank
FROM lifetimes WHERE rank = $rank AND device = $device AND at_peak
GROUP BY source_file, source_line, if(source_file IS NULL, op_name, NULL)
ORDER BY bytes DESC, source_file, source_line
"""


@dataclass(frozen=True)
class Levels:
    """Live bytes of one device over time, and what was alive at its peak."""

    device: Mapping[str, Any]
    columns: Sequence[int]
    """Largest live bytes within each column, above the least of the trace where that is below 0."""
    peak_column: int
    holders: Sequence[Mapping[str, Any]]


def devices(ask: Ask) -> list[dict[str, Any]]:
    """Devices that took memory, the accelerators first."""
    return ask.rows(_DEVICES)


def levels(ask: Ask, device: Mapping[str, Any], width: int) -> Levels:
    """The level in `width` columns from the first to the last event of a device's allocator."""
    of = {"rank": device["rank"], "device": device["device"]}
    span = device["last_ns"] - device["first_ns"] + 1
    cell = -(-span // max(width, 1))
    rows = ask.rows(_LEVELS, of | {"first_ns": device["first_ns"], "cell_ns": cell})
    return Levels(
        device,
        _columns(rows, device, -(-span // cell)),
        (device["peak_ns"] - device["first_ns"]) // cell,
        ask.rows(_HOLDERS, of),
    )


def _columns(
    rows: Sequence[Mapping[str, Any]], device: Mapping[str, Any], count: int
) -> Sequence[int]:
    """A column without an event has the level that the one before left."""
    found = {row["col"]: row for row in rows}
    level, floor = device["before_bytes"], min(device["least_bytes"], 0)
    columns = []
    for column in range(count):
        row = found.get(column)
        columns.append(max(level if row is None else max(row["most"], level), 0) - floor)
        level = level if row is None else row["last"]
    return columns
