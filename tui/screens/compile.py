"""Compile: what torch.compile did, why it did it again, and how much of the work is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from neuron_explorer.reports import formats
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Column, Grid, Rows
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen, event_of
from neuron_explorer.tui.state import EventKey, Spot
from neuron_explorer.tui.text import Line, Piece, known, paragraph, place, safe

KINDS: Mapping[str, tuple[str, ...]] = {
    "all": ("graph_break", "recompile", "compile", "cache_lookup"),
    "graph breaks": ("graph_break",),
    "recompilations": ("recompile",),
    "compilations": ("compile",),
    "cache look-ups": ("cache_lookup",),
}
"""What f steps through, and the kinds of rows of each."""

_PAGE = """
SELECT rank, event_id, kind, name, graph_id, duration_ns, in_window, reason, cache, graph_ops,
    step, coalesce(user_file, source_file) AS file,
    if(user_file IS NULL, source_line, user_line) AS line, count(*) OVER () AS total
FROM compilations WHERE kind IN (SELECT unnest($kinds))
ORDER BY list_position($kinds, kind), duration_ns DESC NULLS LAST, rank, event_id
LIMIT $limit OFFSET $offset
"""
_COUNTS = """
SELECT kind, count(*) AS events, CAST(sum(duration_ns) AS BIGINT) AS ns
FROM compilations GROUP BY ALL
"""
_SHARES = """
SELECT compiled, CAST(sum(device_time_ns) AS BIGINT) AS ns
FROM roofline GROUP BY ALL
"""
_FEW_ROWS = 5_000
_NAMES = {"graph_break": "break", "recompile": "again", "compile": "compile", "cache_lookup": "ask"}
_ROLES = {"graph_break": "bad", "recompile": "warn", "compile": "accent"}


class Compiled(NamedTuple):
    """What was compiled: by kind, the device time that is, and the rows where they are few."""

    counts: Mapping[str, Mapping[str, Any]]
    shares: Mapping[bool | None, int]
    rows: Sequence[Mapping[str, Any]] | None


class CompileScreen(TraceScreen):
    NAME = "compile"
    TITLE = "Compile"
    ORDER = 8
    HELP = (
        "What torch.compile did: graph breaks, recompilations with the guard that failed,"
        " compilations and cache look-ups, each at the line that caused it; and how much of the"
        " device time is compiled. f keeps one kind. Enter opens the line, t the event."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "kind", "kind"),
        Binding("s", "source", "its line"),
        Binding("t", "timeline", "its event"),
    ]
    DEFAULT_CSS = """
    CompileScreen #said { height: 2; }
    CompileScreen #why { height: 6; }
    CompileScreen.low #why { height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.kind = "all"
        self._counts: Mapping[str, Mapping[str, Any]] | None = None
        self._shares: Mapping[bool | None, int] = {}
        self._rows: Sequence[Mapping[str, Any]] | None = None
        """All of them, where they are few: a kind is kept without asking again."""

    def body(self) -> ComposeResult:
        yield Lines(self._said, id="said")
        yield Grid(_columns(), empty=NOTHING, open_cells=24)
        yield Lines(self._why, id="why", ruled=True)

    def on_resize(self) -> None:
        self.set_class(self.size.height < 16, "low")

    def entered(self) -> None:
        self.query_one(Grid).focus()
        if self._counts is None:
            self._counts = {}
            self.query_one(Grid).empty = "reading ..."
            self.query_one(Grid).show_rows(())
            self.ask("counts", _read, self._know)

    def on_grid_moved(self, event: Grid.Moved) -> None:
        event.stop()
        self.query_one("#why", Lines).redraw()

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        self.action_source()

    def spot_here(self) -> Spot | None:
        row = self.query_one(Grid).row
        if row is None or row["file"] is None or row["line"] is None:
            return None
        return Spot(row["file"], row["line"])

    def event_here(self) -> EventKey | None:
        return event_of(self.query_one(Grid).row)

    def label_here(self) -> str:
        row = self.query_one(Grid).row
        return "" if row is None else f"{row['kind']} {row['reason'] or row['name'] or ''}"

    def action_kind(self) -> None:
        kinds = list(KINDS)
        self.kind = kinds[(kinds.index(self.kind) + 1) % len(kinds)]
        self._show()

    def action_source(self) -> None:
        row = self.query_one(Grid).row
        if row is None:
            return
        if row["file"] is None or row["line"] is None:
            self.explorer.complain("no source line is known for this row")
            return
        self.explorer.state.spot = Spot(row["file"], row["line"])
        self.explorer.action_open("source")

    def action_timeline(self) -> None:
        row = self.query_one(Grid).row
        if row is not None:
            self.explorer.state.event = EventKey(row["rank"], row["event_id"])
            self.explorer.action_open("timeline")

    def _show(self) -> None:
        kinds = KINDS[self.kind]
        grid = self.query_one(Grid)
        grid.empty = NOTHING if self.kind == "all" else f"no {self.kind} in this trace"
        if self._rows is not None:
            grid.show_rows([row for row in self._rows if row["kind"] in kinds])
            grid.move_to(0)
        else:
            grid.show_pages(lambda ask, offset, limit: _page(ask, kinds, offset, limit), kinds)
        self.query_one("#said", Lines).redraw()

    def _know(self, found: Compiled) -> None:
        self._counts, self._shares, self._rows = found
        self._show()

    def _said(self, width: int, height: int) -> list[Line]:
        _ = width, height
        counts = self._counts or {}
        first: list[Piece] = [(" shown ", "dim"), (self.kind, "title"), " "]
        for name, kinds in KINDS.items():
            found = counts.get(kinds[0])
            if name != "all" and found is not None:
                first += [f"  {found['events']:,} ", (name, "dim")]
                first += [f" {formats.duration(found['ns'])}"] if found["ns"] is not None else []
        return [first, _compiled_line(self._shares)]

    def _why(self, width: int, height: int) -> list[Line]:
        row = self.query_one(Grid).row
        if row is None:
            return []
        lines: list[Line] = [[" ", (safe(row["name"] or "", max(width - 2, 8)), "title")]]
        if not row["in_window"]:
            lines.append([(" before the profiler recorded: in no step's time", "dim")])
        lines += paragraph(safe(row["reason"] or "no reason is recorded"), width - 1, indent=1)
        return lines[:height]


NOTHING = "nothing compiled here; neuron_explorer.profile() records torch.compile"


def _page(ask: Ask, kinds: Sequence[str], offset: int, limit: int) -> Rows:
    rows = ask.rows(_PAGE, {"kinds": list(kinds), "limit": limit, "offset": offset})
    return Rows(rows, rows[0]["total"] if rows else 0)


def _read(ask: Ask) -> Compiled:
    counts = {row["kind"]: row for row in ask.rows(_COUNTS)}
    shares = {row["compiled"]: row["ns"] for row in ask.rows(_SHARES)}
    few = sum(row["events"] for row in counts.values()) <= _FEW_ROWS
    return Compiled(counts, shares, _page(ask, KINDS["all"], 0, _FEW_ROWS).rows if few else None)


def _compiled_line(shares: Mapping[bool | None, int]) -> Line:
    total = sum(shares.values())
    if not total:
        return [(" no device time to call compiled or eager", "dim")]
    named = (("compiled", True), ("eager", False), ("not known which", None))
    told = [
        f"{name} {formats.duration(shares[which])} ({formats.share(shares[which] / total)})"
        for name, which in named
        if shares.get(which)
    ]
    return [(" device time: ", "dim"), ", ".join(told)]


def _columns() -> list[Column]:
    return [
        Column("kind", lambda r: (_NAMES[r["kind"]], _ROLES.get(r["kind"], "dim")), 7, keep=9),
        Column("time", lambda r: known(r["duration_ns"], formats.duration), 8, right=True, keep=7),
        Column("step", lambda r: "" if r["step"] is None else str(r["step"]), 5, right=True),
        Column("graph", lambda r: safe(r["graph_id"] or "", 6), 6, keep=2),
        Column("line", lambda r: (place(r["file"], r["line"], 28), "place"), 28, keep=8),
        Column("why", lambda r: safe(r["reason"] or r["name"] or ""), prose=True, keep=10),
        Column("cache", lambda r: safe(r["cache"] or "", 5), 5, keep=1),
        Column("ops", lambda r: known(r["graph_ops"], formats.count), 6, right=True, keep=3),
    ]
