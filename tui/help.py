"""`?`: what this screen is for, its keys, and what the letters mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from neuron_explorer.tui.ink import BOUNDS
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen, key_name
from neuron_explorer.tui.text import Line, paragraph

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer


class HelpScreen(ModalScreen[None]):
    """Made of the bindings of the screen it explains, so that no key is forgotten."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close")
    ]

    def __init__(self, of: TraceScreen) -> None:
        super().__init__()
        self._of = of
        self._keys = [
            (", ".join(key_name(key) for key in binding.key.split(",")), binding.description)
            for binding in of.all_bindings()
        ]

    def compose(self) -> ComposeResult:
        yield Lines(self._lines, focus=True)

    def _lines(self, width: int, height: int) -> list[Line]:
        _ = height
        _ = cast("Explorer", self.app)
        room = max(width - 2, 20)
        widest = min(max(len(keys) for keys, _ in self._keys), 22)
        lines: list[Line] = [[(f" {self._of.TITLE}", "title")], []]
        lines += paragraph(self._of.HELP, room, indent=1)
        lines += [[], [(" Keys", "title")]]
        lines += [[(f" {keys:<{widest}}  ", "accent"), does] for keys, does in self._keys]
        lines += [[], [(" Letters: what holds work on the device back", "title")]]
        lines += [
            [(f" {letter}  ", bound), f"{bound}: {meaning}"]
            for bound, (letter, meaning) in BOUNDS.items()
        ]
        return [*lines, [], [(" esc closes this page", "dim")]]
