"""Source: the files by cost, and the lines of one with what each costs in the gutter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from neuron_explorer.reports import formats
from neuron_explorer.reports.layout import MARKS
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Column, Grid
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.source_files import SourceText, source_text
from neuron_explorer.tui.state import EventKey, Spot
from neuron_explorer.tui.text import Line, Piece, paragraph, safe

_FILES = """
SELECT source_file, CAST(sum(device_ns) AS BIGINT) AS device_ns,
    CAST(sum(host_ns) AS BIGINT) AS host_ns
FROM lines GROUP BY ALL
ORDER BY device_ns DESC NULLS LAST, host_ns DESC NULLS LAST, source_file
"""
_COSTS = """
SELECT
    source_line, any_value(source_function) AS function,
    CAST(sum(host_ns) AS BIGINT) AS host_ns, CAST(sum(device_ns) AS BIGINT) AS device_ns,
    CAST(sum(bytes) AS BIGINT) AS bytes, max_by(bound, device_ns) AS bound
FROM lines WHERE source_file = $file GROUP BY source_line ORDER BY source_line
"""
_ROOF = """
SELECT source_line, sum(floor_ns) / nullif(sum(device_time_ns), 0) AS share
FROM roofline WHERE source_file = $file AND floor_ns IS NOT NULL GROUP BY source_line
"""
_COSTLIEST = """
SELECT rank, event_id FROM roofline WHERE source_file = $file AND source_line = $line
ORDER BY device_time_ns DESC, event_id LIMIT 1
"""
_FIRST_OP = """
SELECT rank, event_id FROM events
WHERE source_file = $file AND source_line = $line AND end_ns IS NOT NULL
ORDER BY self_ns DESC NULLS LAST, event_id LIMIT 1
"""
_WIDE = 110
_GUTTER = 8


@dataclass(frozen=True)
class SourceLine:
    """One line of the file: its text where somebody has it, its costs where it has any."""

    number: int
    text: Line | None
    cost: Mapping[str, Any] | None
    share: float | None
    """Floor over time of the work it caused whose floor is known, 0 to 1."""
    gap: bool = False
    """Lines before it are not known."""


class SourceScreen(TraceScreen):
    NAME = "source"
    TITLE = "Source"
    ORDER = 2
    HELP = (
        "Your files, the costliest first, and what each line costs: time on the device and on the"
        " host, bytes moved, how near its work is to the roof (100 % cannot be faster on this"
        " chip), a letter for what holds it back, and a mark where a finding points. n and p jump"
        " from costly line to costly line."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "costly(1)", "next costly"),
        Binding("p", "costly(-1)", "previous costly", show=False),
        Binding("w", "worst", "worst here"),
        Binding("t", "timeline", "its events"),
        Binding("f", "finding", "its finding"),
        Binding("right_square_bracket,h,left", "file(1)", "next file", key_display="]"),
        Binding("left_square_bracket", "file(-1)", "previous file", show=False),
    ]
    DEFAULT_CSS = """
    SourceScreen #files { width: 36; display: none; }
    SourceScreen.wide #files { display: block; }
    SourceScreen #warning { height: 2; display: none; }
    SourceScreen.warned #warning { display: block; }
    SourceScreen #title { height: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._files: list[Mapping[str, Any]] | None = None
        self._file: str | None = None
        self._lines: list[SourceLine] = []
        self._warning = ""

    def body(self) -> ComposeResult:
        yield Lines(self._title, id="title")
        yield Lines(self._warned, id="warning")
        with Horizontal():
            yield Grid(_file_columns(), id="files", empty="no files")
            yield Grid(self._columns(), id="lines", empty="reading ...", open_cells=44)

    def on_resize(self) -> None:
        self.set_class(self.size.width >= _WIDE, "wide")

    def entered(self) -> None:
        if self._files is None:
            self.ask("files", _files, self._know_files)
        else:
            self._follow()
        self.query_one("#lines").focus()

    def state_changed(self) -> None:
        self.query_one("#lines").refresh()

    def on_grid_moved(self, event: Grid.Moved) -> None:
        if event.grid.id == "lines" and isinstance(event.row, SourceLine) and self._file:
            self.explorer.state.spot = Spot(self._file, event.row.number)
            self.query_one("#title", Lines).redraw()

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        if event.grid.id == "files" and isinstance(event.row, dict):
            self._open(event.row["source_file"], None)
            self.query_one("#lines").focus()
        else:
            self.action_timeline()

    def action_costly(self, by: int) -> None:
        grid = self.query_one("#lines", Grid)
        places = [i for i, line in enumerate(self._lines) if line.cost is not None]
        ahead = [i for i in places if (i - grid.cursor) * by > 0]
        if ahead:
            grid.move_to(min(ahead) if by > 0 else max(ahead))

    def action_worst(self) -> None:
        places = range(len(self._lines))
        if places:
            worst = max(places, key=lambda i: _cost(self._lines[i].cost))
            self.query_one("#lines", Grid).move_to(worst)

    def action_file(self, by: int) -> None:
        names = [row["source_file"] for row in self._files or ()]
        if self._file in names:
            self._open(names[(names.index(self._file) + by) % len(names)], None)

    def action_finding(self) -> None:
        spot, state = self.explorer.state.spot, self.explorer.state
        found = state.findings_at(*spot) if spot is not None else []
        if not found:
            self.explorer.complain("no finding points at this line")
            return
        state.select_finding(found[0])
        self.explorer.action_open("evidence")

    def action_timeline(self) -> None:
        spot = self.explorer.state.spot
        if spot is not None:
            self.ask("event", lambda ask: _event_of(ask, spot), self._go)

    def _go(self, event: EventKey | None) -> None:
        if event is None:
            self.explorer.complain("this line caused no event in the trace")
            return
        self.explorer.state.event = event
        self.explorer.action_open("timeline")

    def _know_files(self, files: list[Mapping[str, Any]]) -> None:
        self._files = files
        self.query_one("#files", Grid).show_rows(files)
        if not files:
            self.query_one("#lines", Grid).empty = ""
            self._warn(NO_SOURCE)
        self._follow()

    def _follow(self) -> None:
        """Show the selected line, wherever it was selected; at first the costliest file."""
        spot = self.explorer.state.spot
        if spot is not None and (spot.file != self._file or self._number != spot.line):
            self._open(spot.file, spot.line)
        elif self._file is None and self._files:
            self._open(self._files[0]["source_file"], None)

    @property
    def _number(self) -> int | None:
        row = self.query_one("#lines", Grid).row
        return None if row is None else row.number

    def _open(self, file: str, line: int | None) -> None:
        self.ask("file", lambda ask: _read(ask, file), lambda found: self._show(file, line, found))

    def _show(self, file: str, line: int | None, found: tuple[list[SourceLine], str]) -> None:
        self._file, (self._lines, warning) = file, found
        self._warn(warning)
        grid = self.query_one("#lines", Grid)
        grid.empty = "no lines"
        at = next((i for i, each in enumerate(self._lines) if each.number == line), None)
        if at is None:
            places = range(len(self._lines))
            at = max(places, key=lambda i: _cost(self._lines[i].cost), default=0)
        grid.show_rows(self._lines)
        grid.move_to(at)
        names = [row["source_file"] for row in self._files or ()]
        if file in names:
            self.query_one("#files", Grid).move_to(names.index(file))
        self.query_one("#title", Lines).redraw()

    def _warn(self, warning: str) -> None:
        self._warning = warning
        self.set_class(bool(warning), "warned")
        self.query_one("#warning", Lines).redraw()

    def _warned(self, width: int, height: int) -> list[Line]:
        return paragraph(safe(self._warning), width, "warn")[:height]

    def _title(self, width: int, height: int) -> list[Line]:
        _ = height
        if self._file is None:
            return [[("no file", "dim")]]
        names = [row["source_file"] for row in self._files or ()]
        at = f"  file {names.index(self._file) + 1} of {len(names)}" if self._file in names else ""
        here = self._here()
        room = max(width - len(at) - len(here) - 1, 10)
        return [[(safe(self._file, room), "title"), (here, "accent"), (at, "dim")]]

    def _here(self) -> str:
        row = self.query_one("#lines", Grid).row
        if row is None:
            return ""
        function = (row.cost or {}).get("function")
        return f":{row.number}" + (f" in {safe(str(function), 24)}" if function else "")

    def _columns(self) -> list[Column]:
        return [
            Column("", self._mark, 1, keep=9),
            Column("device", lambda row: _time(row, "device_ns"), 7, right=True, keep=8),
            Column("host", lambda row: _time(row, "host_ns"), 7, right=True, keep=4),
            Column("bytes", _bytes, 7, right=True, keep=3),
            Column("roof", _share, 5, right=True, keep=5),
            Column("", _letter, 1, keep=7),
            Column("line", _number, 5, right=True, keep=9),
            Column("", _code, keep=10),
        ]

    def _mark(self, row: SourceLine) -> Piece:
        found = self.explorer.state.findings_at(self._file or "", row.number)
        return (MARKS[found[0].severity][0], found[0].severity) if found else ""


NO_SOURCE = (
    "No source lines in this trace. Record with torch.profiler's with_stack=True, or with"
    " neuron_explorer.profile() or neuron-explorer run, which keep exact lines."
)


def _read(ask: Ask, file: str) -> tuple[list[SourceLine], str]:
    """Every line of the file that has text or a cost, and the warning over it."""
    costs = {row["source_line"]: row for row in ask.rows(_COSTS, {"file": file})}
    shares = {row["source_line"]: row["share"] for row in ask.rows(_ROOF, {"file": file})}
    text: SourceText = source_text(ask.trace.metadata.values(), file)
    lines: list[SourceLine] = []
    before = 0
    for number in sorted({*text.lines, *(n for n in costs if n is not None)}):
        gap = number != before + 1 and before > 0
        found = (text.lines.get(number), costs.get(number), shares.get(number))
        lines.append(SourceLine(number, *found, gap=gap))
        before = number
    return lines, text.warning


def _files(ask: Ask) -> list[Mapping[str, Any]]:
    return list(ask.rows(_FILES))


def _event_of(ask: Ask, spot: Spot) -> EventKey | None:
    """The longest work that a line caused; else its longest event on the host."""
    where = {"file": spot.file, "line": spot.line}
    for query in (_COSTLIEST, _FIRST_OP):
        found = ask.rows(query, where)
        if found:
            return EventKey(found[0]["rank"], found[0]["event_id"])
    return None


def _cost(cost: Mapping[str, Any] | None) -> tuple[int, int]:
    return (0, 0) if cost is None else (cost["device_ns"] or 0, cost["host_ns"] or 0)


def _time(row: SourceLine, column: str) -> Piece:
    ns = None if row.cost is None else row.cost[column]
    return "" if ns is None else (short_time(ns), role_of(_bound(row)) if column[0] == "d" else "")


def short_time(ns: int) -> str:
    """A duration without the blank before its unit: `12.3ms`."""
    return formats.duration(ns).replace(" ", "")


def _bytes(row: SourceLine) -> Piece:
    count = None if row.cost is None else row.cost["bytes"]
    return "" if count is None else formats.bytes_(count).replace(" ", "")


def _share(row: SourceLine) -> Piece:
    if row.share is None:
        return ""
    return ">100%" if row.share > 1 else formats.share(row.share).replace(" ", "")


def _bound(row: SourceLine) -> str:
    return str((row.cost or {}).get("bound") or "")


def _letter(row: SourceLine) -> Piece:
    bound = _bound(row)
    return (letter(bound), role_of(bound)) if bound else ""


def _number(row: SourceLine) -> Piece:
    return str(row.number), "accent" if row.cost is not None else "dim"


def _code(row: SourceLine) -> list[Piece]:
    if row.text is None:
        function = (row.cost or {}).get("function")
        return [(safe(f"in {function}") if function else "", "dim")]
    return list(row.text)


def _file_columns() -> Sequence[Column]:
    return [
        Column("device", lambda row: _amount(row["device_ns"]), 7, right=True, keep=9),
        Column("file", lambda row: safe(row["source_file"]), keep=10),
    ]


def _amount(ns: int | None) -> str:
    return "" if ns is None else short_time(ns)
