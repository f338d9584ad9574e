"""What ran between two moments of a rank, added up by lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neuron_explorer.errors import TraceError, UsageError
from neuron_explorer.mcp.data_answers import Lane, NamedTime, TimelineAnswer
from neuron_explorer.trace import Trace

_NS_PER_MS = 1_000_000

_EXTENT = """
SELECT rank, min(start_ns) AS start_ns, max(end_ns) AS end_ns
FROM tracks GROUP BY rank ORDER BY rank
"""
# a piece is what an event adds behind the latest end of those that began before it
_LANES = """
WITH clipped AS (
    SELECT device, place, track, name,
        greatest(start_ns, $begin) AS start_ns, least(end_ns, $finish) AS end_ns
    FROM tracks WHERE rank = $rank AND start_ns < $finish AND end_ns > $begin
),

pieces AS (
    SELECT *, greatest(0, end_ns - greatest(start_ns, max(end_ns) OVER earlier)) AS fresh_ns
    FROM clipped
    WINDOW earlier AS (
        PARTITION BY device, place, track ORDER BY start_ns ASC, end_ns DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

named AS (
    SELECT device, place, track, coalesce(name, 'unknown') AS name, count(*) AS count,
        sum(end_ns - start_ns)::BIGINT AS time_ns, sum(fresh_ns)::BIGINT AS fresh_ns
    FROM pieces GROUP BY ALL
)

SELECT device, place, track, sum(count)::BIGINT AS events, sum(fresh_ns)::BIGINT AS busy_ns,
    list({'name': name, 'count': count, 'time_ns': time_ns} ORDER BY time_ns DESC, name)[:$names]
        AS names
FROM named GROUP BY device, place, track
ORDER BY track = 'work' DESC, busy_ns DESC, place, track
"""
_STEPS = """
SELECT step FROM steps WHERE rank = $rank AND start_ns < $finish AND end_ns > $begin ORDER BY step
"""


@dataclass(frozen=True)
class Window:
    """What to look at; times are milliseconds from the rank's first event."""

    rank: int | None
    from_ms: float
    to_ms: float | None
    names: int
    lanes: int


def seen_between(trace: Trace, window: Window) -> TimelineAnswer:
    """Queues of devices first, then host threads, each kind by how busy it was.

    Raises:
        TraceError: Nothing in the trace has a time that was measured.
        UsageError: There is no such rank, or the window lies outside of the recording.
    """
    extent = _extent(trace, window.rank)
    first, last = extent["start_ns"], extent["end_ns"]
    begin = first + round(window.from_ms * _NS_PER_MS)
    finish = last if window.to_ms is None else first + round(window.to_ms * _NS_PER_MS)
    if begin >= min(finish, last):
        raise UsageError(
            "the window is empty or lies behind the end of the recording",
            hint=f"the rank was recorded for {(last - first) / _NS_PER_MS:.3f} ms",
        )
    span = {"rank": extent["rank"], "begin": begin, "finish": finish}
    lanes = trace.sql(_LANES, span | {"names": window.names}).to_pylist()
    return TimelineAnswer(
        rank=extent["rank"],
        from_ms=(begin - first) / _NS_PER_MS,
        to_ms=(finish - first) / _NS_PER_MS,
        recorded_ms=(last - first) / _NS_PER_MS,
        steps=[row["step"] for row in trace.sql(_STEPS, span).to_pylist()],
        lanes=[_lane(row, finish - begin) for row in lanes[: window.lanes]],
        lanes_left_out=max(len(lanes) - window.lanes, 0),
    )


def _extent(trace: Trace, rank: int | None) -> dict[str, Any]:
    found: list[dict[str, Any]] = trace.sql(_EXTENT).to_pylist()
    if not found:
        raise TraceError("no event has a start and an end that were measured")
    chosen = next((row for row in found if rank in (None, row["rank"])), None)
    if chosen is None:
        ranks = ", ".join(str(row["rank"]) for row in found)
        raise UsageError(f"there is no rank {rank}", hint=f"there are {ranks}")
    return chosen


def _lane(row: dict[str, Any], span_ns: int) -> Lane:
    names = [NamedTime(**each) for each in row.pop("names")]
    return Lane(**row, busy_share=row["busy_ns"] / span_ns, names=names)
