"""A table of any length: only the pages around the rows in sight are ever asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from neuron_explorer.tui.asking import Asking
from neuron_explorer.tui.canvas import Canvas
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.text import Line, Piece, cells, cut, fit, short_name

PAGE_ROWS = 200
_KEPT = 16


@dataclass(frozen=True)
class Column:
    """One column: how wide, and what a row shows in it."""

    title: str
    cell: Callable[[Any], Piece | list[Piece]]
    width: int = 0
    """Cells; 0 = what the others leave."""
    right: bool = False
    prose: bool = False
    """Read from its start, so that the end goes where it is too long; of a name the middle goes."""
    keep: int = 0
    """Columns with a smaller number go first where the terminal is narrow."""


@dataclass(frozen=True)
class Rows:
    """A page of rows, and how many there are in all."""

    rows: Sequence[Any]
    total: int


Pager = Callable[[Ask, int, int], Rows]
"""Gives `limit` rows from `offset` on; runs in a worker thread."""


MOVES: Sequence[Binding] = (
    Binding("down,j", "move(1)", "down", show=False),
    Binding("up,k", "move(-1)", "up", show=False),
    Binding("pagedown,ctrl+f", "move_page(1)", "page down", show=False),
    Binding("pageup,ctrl+b", "move_page(-1)", "page up", show=False),
    Binding("home", "move(-1000000000)", "first", show=False),
    Binding("end", "move(1000000000)", "last", show=False),
    Binding("enter", "choose", "open", show=False),
)


class Grid(Asking, Canvas, can_focus=True):
    """Rows with a cursor. `Moved` says where it stands, `Chosen` that enter was pressed there."""

    DEFAULT_CSS = "Grid { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("g", "move(-1000000000)", "first", show=False),
        Binding("G", "move(1000000000)", "last", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, grid: Grid, row: object) -> None:
            super().__init__()
            self.grid, self.row = grid, row

    class Chosen(Message):
        """A row was chosen."""

        def __init__(self, grid: Grid, row: object) -> None:
            super().__init__()
            self.grid, self.row = grid, row

    def __init__(
        self,
        columns: Sequence[Column] = (),
        *,
        empty: str = "nothing here",
        open_cells: int = 14,
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id)
        self.columns: Sequence[Column] = columns
        self.empty = empty
        self._open_cells = open_cells
        """Said where there is no row."""
        self.total: int | None = None
        self.cursor = 0
        self._top = 0
        self._pages: dict[int, Sequence[Any]] = {}
        self._pager: Pager | None = None
        self._of: Hashable = None
        self._kept: dict[Hashable, tuple[dict[int, Sequence[Any]], int | None]] = {}
        self._wanted: set[int] = set()

    @property
    def row(self) -> Any:
        """The row under the cursor; None where it is not there yet."""
        return self.at(self.cursor)

    def at(self, place: int) -> Any:
        """The row at a place from 0; None where it is not there yet."""
        page = self._pages.get(place // PAGE_ROWS, ())
        within = place % PAGE_ROWS
        return page[within] if within < len(page) else None

    def show_rows(self, rows: Sequence[Any]) -> None:
        """Rows that are all here; the cursor stays where it was."""
        self._pager = None
        self._pages = {
            start // PAGE_ROWS: rows[start : start + PAGE_ROWS]
            for start in range(0, len(rows), PAGE_ROWS)
        }
        self.total = len(rows)
        self._place(self.cursor)

    def show_pages(self, pager: Pager, of: Hashable) -> None:
        """Rows that are asked for page by page, from the first on.

        Args:
            pager: Asks for a page.
            of: What they are rows of: the pages of what was shown last are kept.
        """
        self._pager, self._wanted = pager, set()
        self._pages, self.total = self._kept.pop(of, ({}, None))
        self._of, self._kept[of] = of, (self._pages, self.total)
        for oldest in list(self._kept)[:-_KEPT]:
            del self._kept[oldest]
        self.cursor = self._top = 0
        self._want()
        self._place(0)

    def action_move(self, rows: int) -> None:
        self._step(self.cursor + rows)

    def action_move_page(self, pages: int) -> None:
        self._step(self.cursor + pages * max(self._visible - 1, 1))

    def action_choose(self) -> None:
        if self.row is not None:
            self.post_message(self.Chosen(self, self.row))

    def move_to(self, place: int) -> None:
        """Put the cursor on the row at `place`, with as many rows above it as below."""
        if not self._top <= place < self._top + self._visible:
            self._top = place - self._visible // 2
        self._place(place)

    def on_click(self, event: events.Click) -> None:
        place = self._top + event.y - 1
        if event.y < 1 or self.total is None or place >= self.total:
            return
        if place == self.cursor:
            self.action_choose()
        else:
            self._step(place)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._step(self.cursor + 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._step(self.cursor - 3)

    def on_resize(self) -> None:
        self._place(self.cursor)

    def render_line(self, y: int) -> Strip:
        columns = self._fitting(self.size.width)
        if y == 0:
            return self.drawn(_titles(columns, self._counted()))
        place = self._top + y - 1
        if self.total is None or place >= self.total:
            said = self.empty if self.total == 0 and y == 1 else ""
            return self.drawn([(f" {said}", "dim")])
        row = self.at(place)
        here = place == self.cursor and (self.has_focus or not self.ink.color)
        role = "cursor" if here else ""
        mark = "▸" if place == self.cursor else " "
        if row is None:
            return self.drawn([f"{mark} …"], role)
        return self.drawn(_row_line(row, columns, mark), role)

    @property
    def _visible(self) -> int:
        return max(self.size.height - 1, 1)

    def _counted(self) -> str:
        if not self.total:
            return ""
        return f"{self.cursor + 1:,}/{self.total:,}"

    def _place(self, place: int) -> None:
        """Put the cursor there, and draw all: the rows may be others."""
        self._put(place)
        self.refresh()

    def _step(self, place: int) -> None:
        """Put the cursor there; where nothing scrolls, only two rows and their number change."""
        before, top = self.cursor, self._top
        self.paint_together()
        self._put(place)
        if self._top != top:
            self.refresh()
        else:
            for line in {0, before - top + 1, self.cursor - top + 1}:
                self.refresh_lines(line)

    def _put(self, place: int) -> None:
        before = self.cursor
        last = (self.total or 1) - 1
        self.cursor = min(max(place, 0), last)
        self._top = max(0, min(self._top, last - self._visible + 1))
        self._top = min(self._top, self.cursor)
        self._top = max(self._top, self.cursor - self._visible + 1)
        self._want()
        if self.row is not None or before != self.cursor:
            self.post_message(self.Moved(self, self.row))

    def _want(self) -> None:
        """Ask for the first page in sight that is not here."""
        if self._pager is None:
            return
        first, last = self._top // PAGE_ROWS, (self._top + self._visible) // PAGE_ROWS
        pager = self._pager
        for page in range(first, last + 1):
            beyond = self.total is not None and page * PAGE_ROWS >= self.total
            if page in self._pages or page in self._wanted or beyond:
                continue
            self._wanted.add(page)
            self.ask(
                "page",
                lambda ask, page=page: pager(ask, page * PAGE_ROWS, PAGE_ROWS),  # type: ignore[misc]
                lambda rows, page=page: self._arrived(page, rows),  # type: ignore[misc]
            )
            return

    def _arrived(self, page: int, rows: Rows) -> None:
        self._wanted = set()
        self._pages[page] = rows.rows
        self.total = rows.total
        self._kept[self._of] = (self._pages, self.total)
        self._place(self.cursor)

    def _fitting(self, width: int) -> list[tuple[Column, int]]:
        """Columns with their cells; the least important go until the open one has room."""
        shown, room = list(self.columns), min(self._open_cells, width // 3)
        while len(shown) > 1 and _taken(shown) + room > width:
            shown.remove(min(reversed(shown), key=lambda c: (c.keep, c.width == 0)))
        left = width - 1 - sum(c.width + 1 for c in shown if c.width)
        return [(c, c.width or max(left - 2, 8)) for c in shown]


class LetterlessGrid(Grid, inherit_bindings=False):
    """A grid that leaves g and G to its screen."""

    BINDINGS: ClassVar[list[BindingType]] = [*MOVES]


def _taken(columns: Sequence[Column]) -> int:
    return 1 + sum(c.width + 1 for c in columns)


def _titles(columns: Sequence[tuple[Column, int]], counted: str) -> Line:
    line: list[Piece] = ["  "]
    for column, width in columns:
        title = column.title
        if column.width == 0 and counted and len(title) + len(counted) + 2 <= width:
            title = f"{title}  {counted}"
        line += [(fit(title, width, "right" if column.right else "left"), "dim"), " "]
    return line


def _row_line(row: object, columns: Sequence[tuple[Column, int]], mark: str) -> Line:
    line: list[Piece] = [f"{mark} "]
    for column, width in columns:
        line += [*_cell(column, column.cell(row), width), " "]
    return line


def _cell(column: Column, content: Piece | list[Piece], width: int) -> Line:
    """The content in exactly `width` cells."""
    if isinstance(content, list):
        return [*cut(content, width), " " * max(width - cells(content), 0)]
    said, role = content if isinstance(content, tuple) else (content, "")
    if column.width == 0 and not column.prose:
        said = short_name(said, width)
    return [(fit(said, width, "right" if column.right else "left"), role)]
