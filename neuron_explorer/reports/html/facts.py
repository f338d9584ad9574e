"""What the HTML report shows beside the findings, asked of the views while the trace is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuron_explorer.trace import Trace

Row = Mapping[str, Any]

MOST_ROWS = 100
"""Rows of a table: what a person reads, not all there is."""
MOST_POINTS = 250
BINS = 320
"""Columns of the timeline."""
MOST_QUEUES = 10
MOST_THREADS = 3

_BOUNDS = """
SELECT bound, sum(device_time_ns)::BIGINT AS time_ns, count(*) AS events
FROM roofline GROUP BY bound ORDER BY time_ns DESC NULLS LAST
"""
_LINES = """
SELECT *, coalesce(device_ns, 0) / nullif(sum(device_ns) OVER (), 0) AS share,
    count(*) OVER () AS of_all
FROM lines ORDER BY device_ns DESC NULLS LAST, host_ns DESC NULLS LAST, source_file, source_line
LIMIT $most
"""
_KERNELS = """
SELECT *, count(*) OVER () AS of_all FROM kernels
ORDER BY total_ns DESC, name LIMIT $most
"""
_MODULES = """
SELECT *, count(*) OVER () AS of_all FROM modules
ORDER BY device_ns DESC NULLS LAST, host_ns DESC NULLS LAST, module LIMIT $most
"""
_STEPS = """
SELECT *, count(*) OVER () AS of_all FROM steps ORDER BY rank, step LIMIT $most
"""
_HEAT = """
SELECT source_file, source_line, any_value(source_function) AS source_function,
    sum(device_ns)::BIGINT AS device_ns, sum(host_ns)::BIGINT AS host_ns
FROM lines GROUP BY source_file, source_line
"""
_ROOFS = """
SELECT c.chip, any_value(c.bandwidth_bytes_per_s) AS bandwidth, any_value(c.peak_flops) AS peaks,
    bool_or(c.modelled) AS modelled
FROM device_chips AS c INNER JOIN devices AS d ON c.rank = d.rank AND c.device = d.device
WHERE c.chip IS NOT NULL AND c.bandwidth_bytes_per_s > 0
GROUP BY c.chip ORDER BY sum(d.work_ns) DESC, c.chip LIMIT 1
"""
_POINTS = """
SELECT name, op_name, dtype, mode(bound) AS bound, count(*) AS events,
    sum(device_time_ns)::BIGINT AS time_ns, sum(flops)::DOUBLE AS flops,
    sum(bytes)::DOUBLE AS bytes,
    sum(floor_ns) / nullif(sum(device_time_ns) FILTER (WHERE floor_ns IS NOT NULL), 0) AS share,
    arg_max(source_file, device_time_ns) AS source_file,
    arg_max(source_line, device_time_ns) AS source_line,
    count(*) OVER () AS of_all
FROM roofline
WHERE flops > 0 AND bytes > 0 AND device_time_ns > 0 AND chip IS NOT DISTINCT FROM $chip
GROUP BY name, op_name, dtype ORDER BY time_ns DESC, name LIMIT $most
"""
_WHOLE = "SELECT sum(device_time_ns)::BIGINT AS time_ns FROM roofline"

# Host time is that of the outermost ops of a thread: what an op calls lies within it.
_LANES = """
WITH host AS (
    SELECT rank, place, start_ns, end_ns, name,
        max(end_ns) OVER (
            PARTITION BY rank, place ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM tracks WHERE track = 'ops'
),
pieces AS (
    SELECT t.rank, t.device, t.queue AS place, t.end_ns - t.queue_busy_ns AS start_ns, t.end_ns,
        w.name
    FROM timeline AS t INNER JOIN work AS w ON t.rank = w.rank AND t.event_id = w.event_id
    WHERE t.queue_busy_ns > 0 AND t.device <> 'cpu'
    UNION ALL
    SELECT rank, NULL, place, greatest(start_ns, coalesce(reached_ns, start_ns)), end_ns, name
    FROM host WHERE end_ns > coalesce(reached_ns, start_ns)
),
busy AS (
    SELECT rank, device, place, sum(end_ns - start_ns)::BIGINT AS busy_ns,
        row_number() OVER (
            PARTITION BY device IS NULL ORDER BY sum(end_ns - start_ns) DESC, rank, place
        ) AS place_in_order,
        count(*) OVER (PARTITION BY device IS NULL) AS lanes
    FROM pieces GROUP BY rank, device, place
),
"""
_CHOSEN = f"""
chosen AS (
    SELECT * FROM busy
    WHERE place_in_order <= if(device IS NULL, {MOST_THREADS}, {MOST_QUEUES})
),
"""
_CELLS = (
    _LANES
    + _CHOSEN
    + """
span AS (
    SELECT min(start_ns) AS first_ns,
        greatest(1, ceil((max(end_ns) - min(start_ns)) / $bins)::BIGINT) AS cell_ns
    FROM pieces
),
cut AS (
    SELECT p.*, s.first_ns, s.cell_ns, c.place_in_order, c.lanes, unnest(range(
        (p.start_ns - s.first_ns) // s.cell_ns, (p.end_ns - 1 - s.first_ns) // s.cell_ns + 1
    )) AS cell
    FROM pieces AS p CROSS JOIN span AS s
    INNER JOIN chosen AS c ON p.rank = c.rank AND p.place = c.place
        AND p.device IS NOT DISTINCT FROM c.device
),
parts AS (
    SELECT *, least(end_ns, first_ns + (cell + 1) * cell_ns)
        - greatest(start_ns, first_ns + cell * cell_ns) AS busy_ns
    FROM cut
)
SELECT rank, device, place, place_in_order, lanes, cell, first_ns, cell_ns,
    sum(busy_ns)::BIGINT AS busy_ns, count(*) AS events, arg_max(name, busy_ns) AS name
FROM parts GROUP BY ALL
ORDER BY device NULLS LAST, rank, place_in_order, place, cell
"""
)


@dataclass(frozen=True)
class Facts:
    """Rows of the views, as they are."""

    bounds: Sequence[Row]
    """Device time by what bounds it."""
    lines: Sequence[Row]
    kernels: Sequence[Row]
    modules: Sequence[Row]
    steps: Sequence[Row]
    heat: Sequence[Row]
    """Time of every line."""
    roof: Row | None
    """Bandwidth (bytes/s) and peaks (flop/s) of the chip that did most; None = unknown."""
    points: Sequence[Row]
    """Kernels with known bytes and FLOPs, of that chip."""
    work_ns: int
    """All device time, with a place on the roofline or not."""
    cells: Sequence[Row]
    """Busy time of each lane in each column of the timeline."""
    sources: Mapping[str, Mapping[int, str]]
    """Text of source lines by file and number, as the trace kept it."""


def facts(trace: Trace) -> Facts:
    """Ask everything that the report shows."""

    def rows(query: str, **params: object) -> Sequence[Row]:
        return trace.sql(query, params).to_pylist()

    roof = next(iter(rows(_ROOFS)), None)
    chip = None if roof is None else roof["chip"]
    return Facts(
        bounds=rows(_BOUNDS),
        lines=rows(_LINES, most=MOST_ROWS),
        kernels=rows(_KERNELS, most=MOST_ROWS),
        modules=rows(_MODULES, most=MOST_ROWS),
        steps=rows(_STEPS, most=2 * MOST_ROWS),
        heat=rows(_HEAT),
        roof=roof,
        points=rows(_POINTS, chip=chip, most=MOST_POINTS),
        work_ns=rows(_WHOLE)[0]["time_ns"] or 0,
        cells=rows(_CELLS, bins=BINS),
        sources=_sources(trace),
    )


def _sources(trace: Trace) -> dict[str, dict[int, str]]:
    kept: dict[str, dict[int, str]] = {}
    for told in trace.metadata.values():
        for file, source in (told.get("sources") or {}).items():
            lines = {int(number): text for number, text in source.get("lines", {}).items()}
            kept.setdefault(file, {}).update(lines)
    return kept
