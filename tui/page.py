"""A page of text over a screen, until a key closes it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from neuron_explorer.tui.lines import Layout, Lines


class PageScreen(ModalScreen[None]):
    """Scrolls as every page does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close")
    ]

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout_of_page = layout

    def compose(self) -> ComposeResult:
        yield Lines(self._layout_of_page, focus=True)
