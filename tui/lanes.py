"""Lanes of a timeline: one row each, one cell a column, and a cursor that stands on an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from neuron_explorer.tui.asking import Asking
from neuron_explorer.tui.lane_drawing import MOST_ROWS, Drawn, Head, KeptWindows, lane_line, ruler
from neuron_explorer.tui.lane_mouse import LaneMouse
from neuron_explorer.tui.lane_view import View
from neuron_explorer.tui.text import Line
from neuron_explorer.tui.timeline_data import Cell, Range, Span, Window, cells_in


class Lanes(Asking, LaneMouse, can_focus=True):
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
        Binding("v", "range", "range from here, to here"),
    ]

    class Selected(Message):
        """The cursor stands on another event."""

        def __init__(self, span: Span) -> None:
            super().__init__()
            self.span = span

    class Moved(Message):
        """The window shows another stretch of time."""

    class Ranged(Message):
        """Another range of time is chosen, or none."""

        def __init__(self, range_: Range | None) -> None:
            super().__init__()
            self.range = range_

    def __init__(self) -> None:
        super().__init__()
        self.lanes: Sequence[Mapping[str, Any]] = ()
        self.selected: Span | None = None
        self.empty = "reading ..."
        self._view = View()
        self._drawn = Drawn(self._view.window, {})
        self._kept = KeptWindows()
        self._row = 0
        self._top = 0
        self._edge = 0
        """Where to select once the cells are there: -1 the last column, 1 the first; 0 nowhere."""

    @property
    def window(self) -> Window:
        return self._view.window

    @property
    def run_start_ns(self) -> int:
        return self._view.run.start_ns

    @property
    def has_all(self) -> bool:
        """Whether what is drawn is what the window shows, and not still what it showed before."""
        return self._drawn.window == self.window

    @property
    def marks(self) -> Set[str]:
        """Bounds and kinds of the events that are drawn."""
        return self._drawn.marks

    @property
    def range(self) -> Range | None:
        return self.choice.range

    def show(self, lanes: Sequence[Mapping[str, Any]]) -> None:
        """Draw these lanes, from the whole run on."""
        self.lanes = lanes
        self.empty = "no event in this trace lasted: record one with torch.profiler"
        if lanes:
            self._view.run = Range(
                min(lane["start_ns"] for lane in lanes),
                max(lane["end_ns"] for lane in lanes),
            )
        self.action_whole()

    def go_to(self, span: Span, *, zoom: bool = False) -> None:
        """Select an event and move the window to it; zoom where it would be a speck or too wide."""
        self._row = next((i for i, lane in enumerate(self.lanes) if lane["lane"] == span.lane), 0)
        wanted = self._view.around(span, self._columns, zoom=zoom)
        scrolled = self._keep_row()
        if wanted is not None:
            self._look(*wanted)
        elif scrolled:
            self._want()
        self._select(span)

    def action_along(self, by: int) -> None:
        """To the next cell that shows another event; beyond the edge the window moves on."""
        if not self.lanes:
            return
        here = self.selected.key if self.selected is not None else None
        cell = self._drawn.beside(self._lane, self._column(), by, here)
        if cell is not None:
            self._select(cell.span)
            return
        self._edge = by
        self.action_pan(by)

    def action_lane(self, by: int) -> None:
        """To the lane above or below, at the same time."""
        if self.lanes:
            column = self._column()
            self._row = min(max(self._row + by, 0), len(self.lanes) - 1)
            if self._keep_row():
                self._want()
            self._select_cell(self._drawn.nearest(self._lane, column))

    def action_zoom(self, by: int) -> None:
        self._zoom(by, self._middle())

    def action_pan(self, by: int) -> None:
        view = self.window.length_ns
        self._look(self.window.start_ns + by * max(view // 2, 1), view)

    def action_edge(self, by: int) -> None:
        view, run = self.window.length_ns, self._view.run
        self._edge = -by
        self._look(run.start_ns if by < 0 else run.end_ns - view, view)

    def action_whole(self) -> None:
        run = self._view.run
        self._look(run.start_ns, run.end_ns - run.start_ns)

    def action_fit(self) -> None:
        """The chosen range in the whole width, or else the event with what is around it."""
        if self.range is not None:
            self._look(self.range.start_ns, self.range.end_ns - self.range.start_ns)
        elif self.selected is not None:
            self.go_to(self.selected, zoom=True)

    def action_range(self) -> None:
        """Begin a range at the selected event; again: it ends with the event selected then."""
        if self.selected is not None and self.choice.press(self.selected):
            self.ranged()

    def clear_range(self) -> bool:
        """Choose no range; whether there was one."""
        had = self.choice.clear()
        if had:
            self.ranged()
        return had

    def on_resize(self) -> None:
        if self.lanes:
            self._keep_row()
            self._look(self.window.start_ns, self.window.length_ns)

    def time_at(self, x: int) -> int | None:
        column = x - self._label_cells
        return self.window.at(min(column, self._columns)) if self.lanes and column >= 0 else None

    def point_at(self, x: int, y: int) -> None:
        row = self._lane_at(y)
        if y >= 1 and row < len(self.lanes):
            self._row = row
            self._select_cell(self._drawn.nearest(self._lane, x - self._label_cells))

    def zoom_at(self, x: int, by: int) -> None:
        self._zoom(by, self.time_at(x) or self.window.start_ns)

    def render_line(self, y: int) -> Strip:
        of, before = self._made_of(y), self._drawn.strips.get(y)
        if before is not None and before[0] == of and self.lanes:
            return before[1]
        made = self.drawn(self._line(y))
        self._drawn.strips[y] = (of, made)
        return made

    def _made_of(self, y: int) -> object:
        """All that a line of the widget is drawn from, besides the cells of the window."""
        row, selected = self._lane_at(y), self.selected
        lane = self.lanes[row]["lane"] if 0 <= row < len(self.lanes) else None
        chosen = selected.key if selected is not None and selected.lane == lane else None
        here = (row == self._row, self.has_focus)
        look = (self.ink, self._ground, self._rows_each)
        return lane, self.size.width, here, chosen, self.range if y == 0 else None, look

    def _refresh_changed(self) -> None:
        """Draw again only the lines that would look otherwise than they do."""
        strips = self._drawn.strips
        for y in range(self.size.height):
            if y not in strips or strips[y][0] != self._made_of(y):
                self.refresh_lines(y)

    def _line(self, y: int) -> Line:
        row, part = self._lane_at(y), (y - 1) % self._rows_each
        if not self.lanes:
            return [(f" {self.empty}", "dim")] if y == 0 else []
        if y == 0:
            return ruler(self._drawn.window, self.run_start_ns, self._label_cells, self.range)
        if row >= len(self.lanes) or part == MOST_ROWS - 1:
            return []
        selected = self.selected.key if self.selected is not None else None
        ranks = self.lanes[0]["rank"] != self.lanes[-1]["rank"]
        head = Head(self._label_cells, ranks=ranks, here=row == self._row, focus=self.has_focus)
        return lane_line(self.lanes[row], head, self._drawn, selected, part)

    @property
    def _lane(self) -> int:
        return int(self.lanes[self._row]["lane"])

    @property
    def _label_cells(self) -> int:
        width = self.size.width
        return 10 if width < 60 else 20 if width < 120 else 30

    @property
    def _columns(self) -> int:
        return max(self.size.width - self._label_cells, 1)

    @property
    def _rows_each(self) -> int:
        """Rows of a lane: more where few lanes would leave most of a tall terminal blank."""
        return min(max((self.size.height - 1) // max(len(self.lanes), 1), 1), MOST_ROWS)

    @property
    def _visible(self) -> int:
        """Lanes in sight."""
        return max((self.size.height - 1) // self._rows_each, 1)

    def _lane_at(self, y: int) -> int:
        """Place of the lane that a row of the widget belongs to."""
        return self._top + (y - 1) // self._rows_each

    def _zoom(self, by: int, about_ns: int) -> None:
        self._look(*self._view.zoomed(by, about_ns))

    def _look(self, start_ns: int, view_ns: int) -> None:
        self._view.look(start_ns, view_ns, self._columns)
        self._want()

    def _want(self) -> None:
        window = self.window
        shown = self.lanes[self._top : self._top + self._visible]
        if not shown:
            self.refresh()
            return
        key = (window, shown[0]["lane"], shown[-1]["lane"])
        kept = self._kept.get(key)
        if kept is None:
            self.ask(
                "cells",
                lambda ask: Drawn(window, cells_in(ask, *key)),
                lambda drawn: self._keep(key, drawn),
            )
        else:
            self.workers.cancel_group(self, "cells")
            self.paint_together()
            self._keep(key, kept)

    def _keep(self, key: tuple[Window, int, int], drawn: Drawn) -> None:
        self._kept.put(key, drawn)
        self._drawn = drawn
        if self._edge or self.selected is None:
            self._select_cell(self._drawn.outermost(self._lane, self._edge or 1))
            self._edge = 0
        self.refresh()
        self.post_message(self.Moved())

    def _select_cell(self, cell: Cell | None) -> None:
        if cell is not None:
            self._select(cell.span)
        self._refresh_changed()

    def _select(self, span: Span) -> None:
        self.selected = span
        if self.has_all:
            # else its cells are on their way, and all is drawn with them
            self._refresh_changed()
        self.post_message(self.Selected(span))
        if self.choice.reach(span):
            self.ranged()

    def ranged(self) -> None:
        self._refresh_changed()
        self.post_message(self.Ranged(self.range))

    def _keep_row(self) -> bool:
        """Scroll so that the lane of the cursor is in sight; whether that moved anything."""
        before = self._top
        self._top = max(min(self._top, self._row), self._row - self._visible + 1)
        self._top = max(0, min(self._top, len(self.lanes) - self._visible))
        return self._top != before

    def _middle(self) -> int:
        """The point that stays in place in a zoom: the selected event where it is in sight."""
        return self._view.middle(self.selected)

    def _column(self) -> int:
        return -1 if self.selected is None else self.window.column(self._middle())
