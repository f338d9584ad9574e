"""Ops: where the device time went, by kernel, op, module, line or shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from neuron_explorer.reports import formats
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Column, Grid, LetterlessGrid, Rows
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen, event_of, spot_of
from neuron_explorer.tui.state import EventKey, Modules, Spot
from neuron_explorer.tui.text import Line, Piece, known, safe

GROUPS: Mapping[str, str] = {
    "kernel": "r.name",
    "op": "r.op_name",
    "module": "r.module",
    "line": "r.source_file || ':' || r.source_line",
    "shape": "r.op_name || ' ' || w.input_shapes",
    "family": "r.family",
}
"""What rows are grouped by, and the SQL of it."""

SORTS: Mapping[str, str] = {
    "total": "total_ns",
    "count": "events",
    "mean": "mean_ns",
    "longest": "max_ns",
    "bytes": "bytes",
    "roof": "share_of_roof",
    "name": "key",
}

_QUERY = """
WITH grouped AS (
    SELECT
        {key} AS key,
        count(*) AS events,
        CAST(sum(r.device_time_ns) AS BIGINT) AS total_ns,
        CAST(round(avg(r.device_time_ns)) AS BIGINT) AS mean_ns,
        max(r.device_time_ns) AS max_ns,
        CAST(sum(r.bytes) AS BIGINT) AS bytes,
        CAST(sum(r.flops) AS BIGINT) AS flops,
        sum(r.floor_ns) / nullif(sum(r.device_time_ns) FILTER (WHERE r.floor_ns IS NOT NULL), 0)
            AS share_of_roof,
        mode(r.bound) AS bound,
        arg_max(r.rank, r.device_time_ns) AS rank,
        arg_max(r.event_id, r.device_time_ns) AS event_id,
        arg_max(r.source_file, r.device_time_ns) AS source_file,
        arg_max(r.source_line, r.device_time_ns) AS source_line
    FROM roofline AS r {join}
    WHERE $modules IS NULL OR list_contains($modules, r.module)
    GROUP BY ALL
)
SELECT *, sum(total_ns) OVER () AS whole_ns, max(total_ns) OVER () AS most_ns,
    count(*) OVER () AS groups
FROM grouped
WHERE $part = '' OR contains(lower(key), lower($part))
ORDER BY {sort} {direction} NULLS LAST, key, events LIMIT $limit OFFSET $offset
"""
_SHAPES = "INNER JOIN work AS w ON r.rank = w.rank AND r.event_id = w.event_id"


@dataclass(frozen=True)
class Wish:
    """What the reader wants to see, and in which order."""

    group: str = "kernel"
    sort: str = "total"
    down: bool = True
    part: str = ""
    modules: Modules | None = None
    """Only work of these; None = of all."""

    @property
    def query(self) -> str:
        return _QUERY.format(
            key=GROUPS[self.group],
            join=_SHAPES if self.group == "shape" else "",
            sort=SORTS[self.sort],
            direction="DESC" if self.down else "ASC",
        )


class OpsScreen(TraceScreen):
    NAME = "ops"
    TITLE = "Ops"
    ORDER = 4
    HELP = (
        "Device time added up by kernel, op, module, line, shape or family (g changes it). s sorts"
        " by another column, r turns the order around, / keeps the rows whose name holds a text."
        " Enter shows the longest event of a row on the timeline; by line it opens the source."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "group(1)", "group by"),
        Binding("G", "group(-1)", "group by, backwards", show=False),
        Binding("s", "sort", "sort by"),
        Binding("r", "reverse", "reverse"),
        Binding("slash", "search", "filter"),
        Binding("t", "timeline", "longest event"),
        Binding("l", "source", "its line"),
    ]
    DEFAULT_CSS = """
    OpsScreen #wish { height: 1; }
    OpsScreen Input { display: none; height: 1; border: none; padding: 0 1; }
    OpsScreen.searching Input { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.wish = Wish()
        self._asked: Wish | None = None

    def body(self) -> ComposeResult:
        yield Lines(self._said, id="wish")
        yield LetterlessGrid(_columns(), empty=NO_WORK, open_cells=24)
        yield Input(placeholder="part of a name; empty shows all", id="filter", compact=True)

    def entered(self) -> None:
        self.query_one(Grid).focus()
        given, self.explorer.state.modules = self.explorer.state.modules, None
        self._show(replace(self.wish, modules=given, part="") if given else self.wish)

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        if self.wish.group == "line":
            self.action_source()
        else:
            self.action_timeline()

    def on_grid_moved(self, event: Grid.Moved) -> None:
        event.stop()
        self.query_one("#wish", Lines).redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._leave_filter()
        self._show(replace(self.wish, part=event.value))

    def spot_here(self) -> Spot | None:
        return spot_of(self.query_one(Grid).row)

    def event_here(self) -> EventKey | None:
        return event_of(self.query_one(Grid).row)

    def label_here(self) -> str:
        row = self.query_one(Grid).row
        return "" if row is None else str(row["key"] or "not known")

    def action_go_back(self) -> None:
        """Out of the filter first, then to the screen before."""
        if self.has_class("searching"):
            self._leave_filter()
        elif self.wish.part or self.wish.modules:
            self._show(replace(self.wish, part="", modules=None))
        else:
            self.explorer.go_back()

    def action_group(self, by: int) -> None:
        groups = list(GROUPS)
        group = groups[(groups.index(self.wish.group) + by) % len(groups)]
        self._show(replace(self.wish, group=group))

    def action_sort(self) -> None:
        sorts = list(SORTS)
        sort = sorts[(sorts.index(self.wish.sort) + 1) % len(sorts)]
        self._show(replace(self.wish, sort=sort, down=sort != "name"))

    def action_reverse(self) -> None:
        self._show(replace(self.wish, down=not self.wish.down))

    def action_search(self) -> None:
        self.add_class("searching")
        self.query_one(Input).focus()

    def action_timeline(self) -> None:
        row = self.query_one(Grid).row
        if row is not None:
            self.explorer.state.event = EventKey(row["rank"], row["event_id"])
            self.explorer.action_open("timeline")

    def action_source(self) -> None:
        row = self.query_one(Grid).row
        if row is not None and row["source_file"] is None:
            self.explorer.complain("no source line is known for this row")
        elif row is not None:
            self.explorer.state.spot = Spot(row["source_file"], row["source_line"])
            self.explorer.action_open("source")

    def _leave_filter(self) -> None:
        self.remove_class("searching")
        self.query_one(Grid).focus()

    def _show(self, wish: Wish) -> None:
        self.wish = wish
        if wish != self._asked:
            self._asked = wish
            grid = self.query_one(Grid)
            grid.empty = f"no name holds {safe(wish.part, 30)!r}" if wish.part else NO_WORK
            grid.show_pages(lambda ask, offset, limit: _page(ask, wish, offset, limit), wish)
        self.query_one("#wish", Lines).redraw()

    def _said(self, width: int, height: int) -> list[Line]:
        _ = height
        wish = self.wish
        line: list[Piece] = [(" by ", "dim"), (wish.group, "title")]
        line += [("  sorted by ", "dim"), wish.sort, " ↓" if wish.down else " ↑"]
        if wish.modules is not None:
            line += [("  in ", "dim"), (safe(wish.modules.label, 30), "accent")]
        if wish.part:
            line += [("  with ", "dim"), (safe(wish.part, 30), "accent")]
        row = self.query_one(Grid).row
        if row is not None:
            line.append((f"   {formats.duration(row['whole_ns'])} in all", "dim"))
        _ = width
        return [line]


NO_WORK = "no work on any device: record with ProfilerActivity.CUDA (or your device's)"


def _page(ask: Ask, wish: Wish, offset: int, limit: int) -> Rows:
    names = list(wish.modules.names) if wish.modules is not None else None
    params = {"part": wish.part, "modules": names, "limit": limit, "offset": offset}
    rows = ask.rows(wish.query, params)
    return Rows(rows, rows[0]["groups"] if rows else 0)


def _columns() -> list[Column]:
    return [
        Column("total", lambda r: formats.duration(r["total_ns"]), 9, right=True, keep=9),
        Column("", _bar, 8, keep=4),
        Column("share", lambda r: _share(r["total_ns"] / r["whole_ns"]), 5, right=True, keep=6),
        Column("", _letter, 1, keep=8),
        Column("name", lambda r: _name(r["key"]), keep=10),
        Column("count", lambda r: f"{r['events']:,}", 8, right=True, keep=7),
        Column("mean", lambda r: formats.duration(r["mean_ns"]), 8, right=True, keep=5),
        Column("longest", lambda r: formats.duration(r["max_ns"]), 8, right=True, keep=2),
        Column("bytes", lambda r: known(r["bytes"], formats.bytes_), 8, right=True, keep=1),
        Column("flops", lambda r: known(r["flops"], formats.flops), 12, right=True, keep=0),
        Column("roof", lambda r: _share(r["share_of_roof"]), 5, right=True, keep=3),
    ]


def _name(key: str | None) -> Piece:
    return ("not known", "dim") if key is None else safe(key)


def _bar(row: Mapping[str, Any]) -> Piece:
    drawn = formats.bar(row["total_ns"] / (row["most_ns"] or 1), 8)
    return drawn.replace("░", " "), role_of(row["bound"])


def _letter(row: Mapping[str, Any]) -> Piece:
    return letter(row["bound"]), role_of(row["bound"])


def _share(part: float | None) -> str:
    if part is None:
        return ""
    return ">100%" if part > 1 else formats.share(part).replace(" ", "")
