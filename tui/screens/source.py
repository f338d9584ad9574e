"""Source: the files by cost, and the lines of one with what each costs in the gutter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from neuron_explorer.reports.layout import MARKS
from neuron_explorer.tui import source_data as data
from neuron_explorer.tui.grid import Grid
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.source_data import SourceLine
from neuron_explorer.tui.source_gutter import cost_of, file_columns, line_columns, work_line
from neuron_explorer.tui.state import EventKey, Spot
from neuron_explorer.tui.text import Line, Piece, paragraph, safe

_WIDE, _TALL = 110, 36
_WORK, _LESS_WORK, _LEAST_WORK, _AROUND = 14, 9, 4, 7
"""Rows for what a line ran; on a lower terminal those that the file leaves, with what is around."""

_SETTLE_S = 0.05
"""What a line caused is asked for once the cursor rests there."""


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
    SourceScreen #warning { display: none; }
    SourceScreen.warned #warning { display: block; }
    SourceScreen #title { height: 1; }
    SourceScreen #work { display: none; }
    SourceScreen.tall #work { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._files: list[Mapping[str, Any]] | None = None
        self._file: str | None = None
        self._lines: list[SourceLine] = []
        self._warning = ""
        self._work: list[Mapping[str, Any]] | None = None
        """Of the line under the cursor; None until it is known."""

    def body(self) -> ComposeResult:
        yield Lines(self._title, id="title")
        yield Lines(self._warned, id="warning")
        with Horizontal():
            yield Grid(file_columns(), id="files", empty="no files")
            yield Grid(line_columns(self._mark), id="lines", empty="reading ...", open_cells=44)
        yield Lines(self._work_lines, id="work", ruled=True)

    def on_resize(self) -> None:
        self.set_class(self.size.width >= _WIDE, "wide")
        self._give_room()
        self._warn(self._warning)

    def entered(self) -> None:
        if self._files is None:
            self.ask("files", data.files, self._know_files)
        else:
            self._follow()
        self.query_one("#lines").focus()

    def state_changed(self) -> None:
        self.query_one("#lines").refresh()

    def on_grid_moved(self, event: Grid.Moved) -> None:
        if event.grid.id == "lines" and isinstance(event.row, SourceLine) and self._file:
            self.explorer.state.spot = Spot(self._file, event.row.number)
            self.query_one("#title", Lines).redraw()
            self._ask_work(Spot(self._file, event.row.number))

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
            worst = max(places, key=lambda i: cost_of(self._lines[i].cost))
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
            self.ask("event", lambda ask: data.event_of(ask, spot), self._go)

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
            self._warn(data.NO_SOURCE)
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
        self.ask(
            "file", lambda ask: data.read(ask, file), lambda found: self._show(file, line, found)
        )

    def _show(self, file: str, line: int | None, found: tuple[list[SourceLine], str]) -> None:
        self._file, (self._lines, warning) = file, found
        self._warn(warning)
        self._give_room()
        grid = self.query_one("#lines", Grid)
        grid.empty = "no lines"
        at = next((i for i, each in enumerate(self._lines) if each.number == line), None)
        if at is None:
            places = range(len(self._lines))
            at = max(places, key=lambda i: cost_of(self._lines[i].cost), default=0)
        grid.show_rows(self._lines)
        grid.move_to(at)
        names = [row["source_file"] for row in self._files or ()]
        if file in names:
            self.query_one("#files", Grid).move_to(names.index(file))
        self.query_one("#title", Lines).redraw()

    def _give_room(self) -> None:
        """What a line ran gets the rows that the lines themselves leave, or that are plenty."""
        left = min(self.size.height - len(self._lines) - _AROUND, _LESS_WORK)
        rows = _WORK if self.size.height >= _TALL else left
        self.set_class(rows >= _LEAST_WORK, "tall")
        self.query_one("#work").styles.height = max(rows, 0)

    def _ask_work(self, spot: Spot) -> None:
        if self.has_class("tall"):
            self._know_work(None)
            self.ask("work", lambda ask: data.work_of(ask, spot), self._know_work, rest_s=_SETTLE_S)

    def _know_work(self, found: list[Mapping[str, Any]] | None) -> None:
        self._work = found
        self.query_one("#work", Lines).redraw()

    def _work_lines(self, width: int, height: int) -> list[Line]:
        if self._work is None:
            return [[(" reading ...", "dim")]]
        if not self._work:
            return [[(" this line caused no work on a device", "dim")]]
        more = self._work[0]["names"] - min(len(self._work), height - 1)
        head = " what this line ran on the device, the longest first"
        said = f"{head}; {more} more: t shows them" if more > 0 else head
        return [[(said, "title")], *(work_line(row, width) for row in self._work)][:height]

    def _warn(self, warning: str) -> None:
        self._warning = warning
        self.set_class(bool(warning), "warned")
        lines = self.query_one("#warning", Lines)
        lines.styles.height = max(len(self._warned(self.size.width, 2)), 1)
        lines.redraw()

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

    def _mark(self, row: SourceLine) -> Piece:
        found = self.explorer.state.findings_at(self._file or "", row.number)
        return (MARKS[found[0].severity][0], found[0].severity) if found else ""
