"""What the timeline asks: cells for a stretch of time, and the way from one event to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.event_facts import in_words
from neuron_explorer.tui.state import EventKey

LANES = "SELECT * FROM lanes ORDER BY lane"

# At most one row a lane and column. A span shorter than a cell counts where it begins; a longer
# one in every cell it touches, and of those that enclose one another the innermost shows.
# Rows are gone back to by their place in the table: a look-up, where ids would read it all.
_CELLS = """
WITH short AS (
    SELECT lane, CAST(greatest(0, start_ns - $start_ns) // $cell_ns AS INTEGER) AS col,
        count(*) AS events, CAST(sum(end_ns - start_ns) AS BIGINT) AS busy_ns,
        arg_max(rowid, end_ns - start_ns) AS place
    FROM spans
    WHERE {seen} AND end_ns - start_ns < $cell_ns GROUP BY ALL
),
long AS (
    SELECT lane, rowid AS place, start_ns, event_id, CAST(unnest(range(
        greatest(0, (start_ns - $start_ns) // $cell_ns),
        least($columns, (end_ns - 1 - $start_ns) // $cell_ns + 1)
    )) AS INTEGER) AS col
    FROM spans
    WHERE {seen} AND end_ns - start_ns >= $cell_ns
),
inner_most AS (
    SELECT lane, col, count(*) AS events, arg_max(place, (start_ns, event_id)) AS place
    FROM long GROUP BY ALL
),
cells AS (
    SELECT lane, col, coalesce(l.events, 0) + coalesce(s.events, 0) AS events,
        coalesce(s.busy_ns, 0) AS busy_ns,
        if(l.place IS NULL OR s.busy_ns * 2 > $cell_ns, s.place, l.place) AS place
    FROM short AS s FULL JOIN inner_most AS l USING (lane, col)
)
SELECT c.lane, c.col, c.events, c.busy_ns, w.rank, w.event_id, w.start_ns, w.end_ns, w.name, w.mark
FROM cells AS c INNER JOIN spans AS w ON c.place = w.rowid
WHERE c.col < $columns
ORDER BY c.lane, c.col
""".format(seen="lane BETWEEN $first AND $last AND start_ns < $end_ns AND end_ns > $start_ns")
_SPAN = "SELECT * FROM spans WHERE rank = $rank AND event_id = $event_id"
_DETAILS = """
SELECT
    rank, event_id, name, step, phase, queue, source_file, source_line, source_function, module,
    input_shapes, input_dtypes, cost_note, op_id, launch_id
FROM events WHERE rank = $rank AND event_id = $event_id
"""
_ROOF = """
SELECT bytes, flops, share_of_floor, floor_ns, bound
FROM roofline WHERE rank = $rank AND event_id = $event_id
"""
_NAME = "SELECT name FROM spans WHERE rank = $rank AND event_id = $event_id"
_UP = """
SELECT rank, coalesce(
    nullif(launch_id, event_id), nullif(op_id, event_id), nullif(parent_id, event_id)
) AS event_id
FROM events WHERE rank = $rank AND event_id = $event_id
"""
_DOWN = """
SELECT rank, event_id FROM events
WHERE rank = $rank AND event_id <> $event_id AND end_ns IS NOT NULL
    AND (launch_id = $event_id OR op_id = $event_id OR parent_id = $event_id)
ORDER BY CASE WHEN launch_id = $event_id THEN 0 WHEN op_id = $event_id THEN 1 ELSE 2 END,
    layer <> 'hardware', start_ns, event_id
LIMIT 1
"""
_BESIDE = """
SELECT * FROM spans
WHERE
    ({which}) AND start_ns {after}= $start_ns
    AND (start_ns {after} $start_ns OR event_id {after} $event_id)
ORDER BY start_ns {order}, event_id {order} LIMIT 1
"""
SAME_NAME = "rank = $rank AND lane = $lane AND name = $text"
CONTAINS = "contains(lower(name), lower($text))"
STEPS = "starts_with(name, 'ProfilerStep') AND rank = $rank"
_GAP = """
SELECT rank, after_event_id AS event_id FROM gaps
WHERE rank = $rank AND duration_ns >= $least_ns AND end_ns {after} $start_ns
ORDER BY end_ns {order} LIMIT 1
"""


_NO_ROOF = dict.fromkeys(("bytes", "flops", "share_of_floor", "floor_ns", "bound"))


class Window(NamedTuple):
    """A stretch of time in a number of columns; a cell is a whole number of nanoseconds."""

    start_ns: int
    cell_ns: int
    columns: int

    @property
    def length_ns(self) -> int:
        return self.cell_ns * self.columns

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.length_ns

    def at(self, column: int) -> int:
        """Time at which a column begins."""
        return self.start_ns + column * self.cell_ns

    def column(self, at_ns: int) -> int:
        """Column of a time, or the outermost where it is out of sight."""
        return min(max((at_ns - self.start_ns) // self.cell_ns, 0), self.columns - 1)


class Range(NamedTuple):
    """A stretch of time that the reader chose."""

    start_ns: int
    end_ns: int


class Span(NamedTuple):
    """An event as the timeline draws it."""

    rank: int
    lane: int
    event_id: int
    start_ns: int
    end_ns: int
    name: str
    mark: str

    @property
    def key(self) -> EventKey:
        return EventKey(self.rank, self.event_id)


class Cell(NamedTuple):
    """One column of a lane: the event that stands for it, and how many there are."""

    span: Span
    events: int
    busy: float
    """Part of the cell that events shorter than it fill; above 1 where they overlap."""

    def is_long(self, cell_ns: int) -> bool:
        return self.span.end_ns - self.span.start_ns >= cell_ns


Cells = Mapping[tuple[int, int], Cell]
"""By lane and column."""


def cells_in(ask: Ask, window: Window, first: int, last: int) -> Cells:
    """Cells of the lanes `first` to `last`."""
    rows = ask.rows(
        _CELLS,
        {
            "first": first,
            "last": last,
            "start_ns": window.start_ns,
            "end_ns": window.end_ns,
            "cell_ns": window.cell_ns,
            "columns": window.columns,
        },
    )
    return {
        (row["lane"], row["col"]): Cell(
            span_of(row), row["events"], row["busy_ns"] / window.cell_ns
        )
        for row in rows
    }


def span_of(row: Mapping[str, Any]) -> Span:
    return Span(
        row["rank"],
        row["lane"],
        row["event_id"],
        row["start_ns"],
        row["end_ns"],
        row["name"] or "",
        row["mark"],
    )


def span(ask: Ask, key: EventKey | None) -> Span | None:
    """An event by its key; None where it only marks a moment."""
    if key is None:
        return None
    found = ask.rows(_SPAN, key._asdict())
    return span_of(found[0]) if found else None


def details(ask: Ask, key: EventKey) -> Mapping[str, Any]:
    """What is told of an event, with the names of its op and launch, and its roof."""
    found = ask.rows(_DETAILS, key._asdict())
    if not found:
        return {}
    event = found[0]
    named = {
        f"{which}_name": _name(ask, key.rank, event[f"{which}_id"]) for which in ("op", "launch")
    }
    roof: Sequence[Mapping[str, Any]] = ask.rows(_ROOF, key._asdict())
    known = roof[0] if roof else _NO_ROOF
    note = event["cost_note"] if known["bytes"] is None else None
    why = {"why_unknown": in_words(note) if note else None}
    return {**event, **named, **known, **why}


def _name(ask: Ask, rank: int, event_id: int | None) -> str | None:
    # one by one: of a list of ids DuckDB skips no part of the table
    if event_id is None:
        return None
    found = ask.rows(_NAME, {"rank": rank, "event_id": event_id})
    return found[0]["name"] if found else None


def up(ask: Ask, key: EventKey) -> Span | None:
    """What caused it: its launch, its op, or what encloses it."""
    return _first(ask, _UP, key._asdict())


def down(ask: Ask, key: EventKey) -> Span | None:
    """What it caused first: its work, or the first event inside it."""
    return _first(ask, _DOWN, key._asdict())


def beside(ask: Ask, which: str, of: Span, by: int, text: str | None = None) -> Span | None:
    """The next (`by` > 0) or previous event that `which` selects."""
    query = _directed(_BESIDE, by, which)
    wanted = {"start_ns": of.start_ns, "event_id": of.event_id}
    known = {"rank": of.rank, "lane": of.lane, "text": text}
    found = ask.rows(query, wanted | {k: v for k, v in known.items() if f"${k}" in which})
    return span_of(found[0]) if found else None


def gap(ask: Ask, of: Span, by: int, least_ns: int) -> Span | None:
    """The work that ends the next or previous gap of at least `least_ns`."""
    params = {"rank": of.rank, "start_ns": of.start_ns, "least_ns": least_ns}
    return _first(ask, _directed(_GAP, by), params)


def _directed(query: str, by: int, which: str = "") -> str:
    after, order = (">", "ASC") if by > 0 else ("<", "DESC")
    return query.format(which=which, after=after, order=order)


def _first(ask: Ask, query: str, params: Mapping[str, object]) -> Span | None:
    found = ask.rows(query, params)
    if not found or found[0]["event_id"] is None:
        return None
    return span(ask, EventKey(found[0]["rank"], found[0]["event_id"]))
