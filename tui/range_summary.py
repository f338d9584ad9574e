"""What happened in a range of time: busy time of each queue, by bound, and the host's calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuron_explorer.reports import formats
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.text import Line, Piece, cells, safe
from neuron_explorer.tui.timeline_data import Range

# Busy: covered by at least one event of the group, each nanosecond once, and within the range only.
_BUSY = """
WITH clipped AS (
    SELECT
        lane, {mark} AS mark, greatest(start_ns, $start_ns) AS start_ns,
        least(end_ns, $end_ns) AS end_ns
    FROM spans WHERE start_ns < $end_ns AND end_ns > $start_ns
),
ordered AS (
    SELECT *, max(end_ns) OVER (
        PARTITION BY lane, mark ORDER BY start_ns ASC, end_ns ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reached_ns
    FROM clipped
)
SELECT
    o.lane, l.rank, l.place, l.track, l.device, o.mark, count(*) AS events,
    CAST(sum(greatest(
        o.end_ns - greatest(o.start_ns, coalesce(o.reached_ns, o.start_ns)), 0
    )) AS BIGINT) AS busy_ns
FROM ordered AS o INNER JOIN lanes AS l ON o.lane = l.lane
WHERE l.track IN ('work', 'ops', 'runtime', 'compile', 'host')
GROUP BY ALL ORDER BY busy_ns DESC, o.lane, o.mark
"""


@dataclass(frozen=True)
class Summary:
    """Of one range; times in ns, queue time and thread time added up over queues and threads."""

    range: Range
    queues: Sequence[Mapping[str, Any]]
    """Each with the events and the busy time of its work."""
    bounds: Mapping[str, tuple[int, int]]
    """Events and queue time by what bounds the work."""
    calls: Mapping[str, tuple[int, int]]
    """Events and thread time by kind of host event."""


def summary(ask: Ask, chosen: Range) -> Summary:
    """Add up what the range holds; events that reach beyond it count with their part inside."""
    params = chosen._asdict()
    whole = ask.rows(_BUSY.format(mark="''"), params)
    marked = ask.rows(_BUSY.format(mark="mark"), params)
    queues = [row for row in whole if row["track"] == "work"]
    return Summary(
        chosen,
        queues,
        _added(row for row in marked if row["track"] == "work"),
        _added(row for row in marked if row["track"] != "work"),
    )


def lines(found: Summary, run_start_ns: int, width: int) -> list[Line]:
    """Four lines: the range, then queues, bounds and calls, as many as fit."""
    chosen = found.range
    length = chosen.end_ns - chosen.start_ns
    at = formats.duration(chosen.start_ns - run_start_ns)
    ranks = len({row["rank"] for row in found.queues}) > 1
    queues = [_queue(row, length, ranks=ranks) for row in found.queues]
    return [
        [
            (f" range {formats.duration(length)}", "title"),
            f" from {at} on   ",
            ("z", "accent"),
            (" zooms to it  ", "dim"),
            ("esc", "accent"),
            (" leaves it", "dim"),
        ],
        _row("queues", queues or [["no work of any device here"]], width),
        _row("bounds", [_marked(*item) for item in found.bounds.items()], width),
        _row("host", [_marked(*item) for item in found.calls.items()], width),
    ]


def _queue(row: Mapping[str, Any], length_ns: int, *, ranks: bool) -> list[Piece]:
    rank = f"r{row['rank']} " if ranks else ""
    share = formats.share(row["busy_ns"] / length_ns)
    events = f"{row['events']:,} event{'' if row['events'] == 1 else 's'}"
    return [f"{rank}{safe(str(row['place']), 18)} {share} busy, {events}"]


def _added(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        events, busy = found.get(row["mark"], (0, 0))
        found[row["mark"]] = (events + row["events"], busy + row["busy_ns"])
    return dict(sorted(found.items(), key=lambda item: -item[1][1]))


def _marked(mark: str, amount: tuple[int, int]) -> list[Piece]:
    events, busy = amount
    return [
        (f" {letter(mark)} ", f"{role_of(mark)}:fill"),
        f" {safe(mark, 14)} {formats.duration(busy)} in {events:,}",
    ]


def _row(head: str, parts: Sequence[list[Piece]], width: int) -> Line:
    """As many of the parts as fit, and how many do not."""
    line: list[Piece] = [(f" {head:<7}", "dim")]
    for place, part in enumerate(parts):
        left = len(parts) - place - 1
        if place and cells(line) + cells(part) + (8 if left else 2) > width:
            return [*line, (f"+{left + 1}", "dim")]
        line += [*part, "  "]
    return line
