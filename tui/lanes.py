"""Lanes of a timeline: one row each, one cell a column, and a cursor that stands on an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from neuron_explorer.reports import formats
from neuron_explorer.tui.asking import Asking
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.text import Line, Piece, fit, safe, strip
from neuron_explorer.tui.timeline_data import Cell, Cells, Span, Window, cells_in

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer

_DENSE, _SPARSE = 0.5, 0.05
"""Part of a cell that short events must fill to show as solid, or as more than a dot."""

_NAMED_CELLS = 4
_TICK_CELLS = 14


class Lanes(Asking, Widget, can_focus=True):
    """Draws a window of time; asks for its cells whenever that window or the lanes change."""

    DEFAULT_CSS = "Lanes { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "along(1)", "next event", show=False),
        Binding("left,h", "along(-1)", "previous event", show=False),
        Binding("down,j", "lane(1)", "lane below", show=False),
        Binding("up,k", "lane(-1)", "lane above", show=False),
        Binding("pagedown,ctrl+f", "lane(10)", "lanes below", show=False),
        Binding("pageup,ctrl+b", "lane(-10)", "lanes above", show=False),
        Binding("plus,equals_sign,i", "zoom(4)", "zoom in", key_display="+"),
        Binding("minus,o", "zoom(-4)", "zoom out", key_display="-"),
        Binding("L,shift+right", "pan(1)", "pan right", show=False),
        Binding("H,shift+left", "pan(-1)", "pan left", show=False),
        Binding("home,g", "edge(-1)", "start of the run", show=False),
        Binding("end,G", "edge(1)", "end of the run", show=False),
        Binding("a", "whole", "all"),
        Binding("z", "fit", "zoom to event"),
    ]

    class Selected(Message):
        """The cursor stands on another event."""

        def __init__(self, span: Span) -> None:
            super().__init__()
            self.span = span

    class Moved(Message):
        """The window shows another stretch of time."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: Sequence[Mapping[str, Any]] = ()
        self.selected: Span | None = None
        self.empty = "reading ..."
        self._window = Window(0, 1, 1)
        self._drawn = Window(0, 1, 1)
        self._run = (0, 1)
        self._cells: Cells = {}
        self._row = 0
        self._top = 0
        self._edge = 0
        """Where to select once the cells are there: -1 the last column, 1 the first; 0 nowhere."""

    @property
    def window(self) -> Window:
        return self._window

    @property
    def run_start_ns(self) -> int:
        return self._run[0]

    def show(self, lanes: Sequence[Mapping[str, Any]]) -> None:
        """Draw these lanes, from the whole run on."""
        self.lanes = lanes
        self.empty = "no event in this trace lasted: record one with torch.profiler"
        if lanes:
            self._run = (
                min(lane["start_ns"] for lane in lanes),
                max(lane["end_ns"] for lane in lanes),
            )
        self.action_whole()

    def go_to(self, span: Span, *, zoom: bool = False) -> None:
        """Select an event and move the window to it; zoom where it would be a speck or too wide."""
        self._row = next((i for i, lane in enumerate(self.lanes) if lane["lane"] == span.lane), 0)
        length, view = span.end_ns - span.start_ns, self._window.end_ns - self._window.start_ns
        cells = length / self._window.cell_ns
        if zoom or cells < 1 or length > view:
            view = max(length * 8, self._columns)
        inside = self._window.start_ns <= span.start_ns and span.end_ns <= self._window.end_ns
        if not inside or view != self._window.end_ns - self._window.start_ns:
            self._look((span.start_ns + span.end_ns) // 2 - view // 2, view)
        self._select(span)
        self._keep_row()

    def action_along(self, by: int) -> None:
        """To the next cell that shows another event; beyond the edge the window moves on."""
        if not self.lanes:
            return
        lane, column = self.lanes[self._row]["lane"], self._column()
        here = self.selected.key if self.selected is not None else None
        column += by
        while 0 <= column < self._columns:
            cell = self._cells.get((lane, column))
            if cell is not None and cell.span.key != here:
                self._select(cell.span)
                return
            column += by
        self._edge = by
        self.action_pan(by)

    def action_lane(self, by: int) -> None:
        """To the lane above or below, at the same time."""
        if not self.lanes:
            return
        column = self._column()
        self._row = min(max(self._row + by, 0), len(self.lanes) - 1)
        if self._keep_row():
            self._want()
        lane = self.lanes[self._row]["lane"]
        near = [col for at, col in self._cells if at == lane]
        if near:
            self._select(self._cells[lane, min(near, key=lambda col: abs(col - column))].span)
        self.refresh()

    def action_zoom(self, by: int) -> None:
        view = self._window.end_ns - self._window.start_ns
        wider = view // by if by > 0 else view * -by
        middle = self._middle()
        share = (middle - self._window.start_ns) / max(view, 1)
        self._look(int(middle - wider * share), wider)

    def action_pan(self, by: int) -> None:
        view = self._window.end_ns - self._window.start_ns
        self._look(self._window.start_ns + by * max(view // 2, 1), view)

    def action_edge(self, by: int) -> None:
        view = self._window.end_ns - self._window.start_ns
        self._edge = -by
        self._look(self._run[0] if by < 0 else self._run[1] - view, view)

    def action_whole(self) -> None:
        self._look(self._run[0], self._run[1] - self._run[0])

    def action_fit(self) -> None:
        if self.selected is not None:
            self.go_to(self.selected, zoom=True)

    def on_resize(self) -> None:
        if self.lanes:
            self._look(self._window.start_ns, self._window.end_ns - self._window.start_ns)
            self._keep_row()

    def on_click(self, event: events.Click) -> None:
        row = self._top + event.y - 1
        if event.y < 1 or row >= len(self.lanes):
            return
        self._row = row
        lane, column = self.lanes[row]["lane"], event.x - self._label_cells
        near = [col for at, col in self._cells if at == lane]
        if near:
            self._select(self._cells[lane, min(near, key=lambda col: abs(col - column))].span)
        self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._wheel(event.x, 2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._wheel(event.x, -2)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.action_pan(-1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.action_pan(1)

    def render_line(self, y: int) -> Strip:
        explorer, width = cast("Explorer", self.app), self.size.width
        if not self.lanes:
            line: Line = [(f" {self.empty}", "dim")] if y == 0 else []
        elif y == 0:
            line = self._ruler()
        elif self._top + y - 1 < len(self.lanes):
            line = self._lane_line(self._top + y - 1)
        else:
            line = []
        return strip(line, width, explorer.ink).apply_style(self.rich_style)

    @property
    def _label_cells(self) -> int:
        width = self.size.width
        return 10 if width < 60 else 20 if width < 120 else 30

    @property
    def _columns(self) -> int:
        return max(self.size.width - self._label_cells, 1)

    @property
    def _visible(self) -> int:
        return max(self.size.height - 1, 1)

    def _wheel(self, x: int, by: int) -> None:
        column = min(max(x - self._label_cells, 0), self._columns)
        at = self._window.start_ns + column * self._window.cell_ns
        view = self._window.end_ns - self._window.start_ns
        wider = view // by if by > 0 else view * -by
        self._look(int(at - wider * column / self._columns), wider)

    def _look(self, start_ns: int, view_ns: int) -> None:
        """Move the window, within the run and down to a nanosecond a cell."""
        columns, (first, last) = self._columns, self._run
        cell = max(-(-min(view_ns, last - first) // columns), 1)
        start = max(min(start_ns, last - cell * columns), first)
        self._window = Window(start, cell, columns)
        self._want()

    def _want(self) -> None:
        window = self._window
        shown = self.lanes[self._top : self._top + self._visible]
        if not shown:
            self.refresh()
            return
        first, last = shown[0]["lane"], shown[-1]["lane"]
        self.ask(
            "cells",
            lambda ask: cells_in(ask, window, first, last),
            lambda cells: self._know(window, cells),
        )

    def _know(self, window: Window, cells: Cells) -> None:
        self._drawn, self._cells = window, cells
        if self._edge or self.selected is None:
            self._select_at_edge()
        self.refresh()
        self.post_message(self.Moved())

    def _select_at_edge(self) -> None:
        lane = self.lanes[self._row]["lane"]
        columns = [col for at, col in self._cells if at == lane]
        if columns:
            at = max(columns) if self._edge < 0 else min(columns)
            self._select(self._cells[lane, at].span)
        self._edge = 0

    def _select(self, span: Span) -> None:
        self.selected = span
        self.refresh()
        self.post_message(self.Selected(span))

    def _keep_row(self) -> bool:
        """Scroll so that the lane of the cursor is in sight; whether that moved anything."""
        before = self._top
        self._top = max(min(self._top, self._row), self._row - self._visible + 1)
        self._top = max(0, min(self._top, len(self.lanes) - self._visible))
        return self._top != before

    def _middle(self) -> int:
        """The point that stays in place in a zoom: the selected event where it is in sight."""
        window, span = self._window, self.selected
        if span is not None and span.start_ns < window.end_ns and span.end_ns > window.start_ns:
            begin, end = max(span.start_ns, window.start_ns), min(span.end_ns, window.end_ns)
            return (begin + end) // 2
        return (window.start_ns + window.end_ns) // 2

    def _column(self) -> int:
        if self.selected is None:
            return -1
        column = (self._middle() - self._window.start_ns) // self._window.cell_ns
        return min(max(column, 0), self._columns - 1)

    def _ruler(self) -> Line:
        window, line = self._drawn, " " * self._label_cells
        for column in range(0, window.columns - 6, _TICK_CELLS):
            past = column * window.cell_ns
            at = window.start_ns - self._run[0]
            said = f"+{formats.duration(past)}" if past else formats.duration(at)
            line += fit(f"│{said}", _TICK_CELLS)
        return [(line, "dim")]

    def _lane_line(self, row: int) -> Line:
        lane = self.lanes[row]
        here = row == self._row
        line: list[Piece] = [(self._label(lane, here=here), "title" if here else "dim")]
        column = 0
        while column < self._drawn.columns:
            pieces, taken = self._cell_run(lane["lane"], column)
            line += pieces
            column += taken
        return line

    def _label(self, lane: Mapping[str, Any], *, here: bool) -> str:
        many = len({each["rank"] for each in self.lanes}) > 1
        rank = f"r{lane['rank']} " if many else ""
        width = self._label_cells - 2
        track = str(lane["track"])
        room = width - len(track) - 1
        place = formats.shorten(rank + safe(str(lane["place"])), max(room, 0)) if room > 3 else ""
        said = f"{place} {track}" if place else track
        return ("▸" if here and self.has_focus else " ") + fit(said, width) + " "

    def _cell_run(self, lane: int, column: int) -> tuple[Line, int]:
        """The pieces from a column on that show one event, and how many columns they take."""
        cell = self._cells.get((lane, column))
        if cell is None:
            return [" "], 1
        if not cell.is_long(self._drawn.cell_ns):
            return [self._speck(cell)], 1
        end = column + 1
        while end < self._drawn.columns and self._same(lane, end, cell):
            end += 1
        return [self._block(cell, end - column)], end - column

    def _same(self, lane: int, column: int, cell: Cell) -> bool:
        other = self._cells.get((lane, column))
        return other is not None and other.span.key == cell.span.key

    def _block(self, cell: Cell, width: int) -> Piece:
        """A long event: its letter, and its name where there is room."""
        mark = cell.span.mark
        said = letter(mark)
        if width >= _NAMED_CELLS:
            said = f"{said} {safe(cell.span.name).rpartition('::')[2]}"
            said = formats.clip(said, width - 1) if cell_len(said) > width - 1 else said
        else:
            said = said * width
        return fit(said, width), self._role(cell, "fill")

    def _speck(self, cell: Cell) -> Piece:
        """Short events: solid, a letter, or a dot, by how much of the cell they fill."""
        if cell.busy >= _DENSE:
            return letter(cell.span.mark), self._role(cell, "fill")
        return (letter(cell.span.mark) if cell.busy >= _SPARSE else "·"), self._role(cell, "")

    def _role(self, cell: Cell, kind: str) -> str:
        chosen = self.selected is not None and cell.span.key == self.selected.key
        if chosen:
            return "chosen"
        role = role_of(cell.span.mark)
        return f"{role}:{kind}" if kind else role
