"""Bookmarks: the list of them, and the way back to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from neuron_explorer.tui.grid import Column, Grid
from neuron_explorer.tui.kept import Mark
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.text import Line, place, safe

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer


class MarksScreen(ModalScreen[Mark | None]):
    """The bookmarks of this trace; gives the chosen one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,M", "dismiss", "close"),
        Binding("d,delete", "remove", "remove"),
    ]
    DEFAULT_CSS = "MarksScreen #said { height: 2; }"

    def compose(self) -> ComposeResult:
        yield Lines(self._said, id="said")
        yield Grid(_columns(), empty="no bookmark in this trace yet: m sets one", open_cells=24)

    def on_mount(self) -> None:
        self._show()
        self.query_one(Grid).focus()

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        self.dismiss(cast("Mark", event.row))

    def action_remove(self) -> None:
        explorer, row = cast("Explorer", self.app), self.query_one(Grid).row
        if row is not None:
            explorer.change_marks([mark for mark in explorer.marks if mark != row])
            self._show()

    def _show(self) -> None:
        self.query_one(Grid).show_rows(cast("Explorer", self.app).marks)

    def _said(self, width: int, height: int) -> list[Line]:
        _ = width, height
        keys = [("enter", "opens"), ("d", "removes"), ("esc", "closes")]
        line: list[str | tuple[str, str]] = [(" Bookmarks  ", "title")]
        for key, does in keys:
            line += [(f"{key} ", "accent"), (f"{does}  ", "dim")]
        return [line]


def _columns() -> list[Column]:
    return [
        Column("screen", lambda mark: mark.screen, 9, keep=9),
        Column("what", lambda mark: safe(mark.label), prose=True, keep=10),
        Column("line", lambda mark: (_line(mark), "place"), 32, keep=8),
    ]


def _line(mark: Mark) -> str:
    return "" if mark.spot is None else place(mark.spot.file, mark.spot.line, 32)
