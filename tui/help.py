"""`?`: what this screen is for, its keys, and what the letters mean."""

from __future__ import annotations

from neuron_explorer.tui.ink import BOUNDS
from neuron_explorer.tui.page import PageScreen
from neuron_explorer.tui.screen import TraceScreen, key_name
from neuron_explorer.tui.text import Line, paragraph


class HelpScreen(PageScreen):
    """Made of the bindings of the screen it explains, so that no key is forgotten."""

    def __init__(self, of: TraceScreen) -> None:
        super().__init__(self._lines)
        self._of = of
        self._keys = [
            (", ".join(key_name(key) for key in binding.key.split(",")), binding.description)
            for binding in of.all_bindings()
        ]

    def _lines(self, width: int, height: int) -> list[Line]:
        _ = height
        room = max(width - 2, 20)
        widest = min(max(len(keys) for keys, _ in self._keys), 22)
        lines: list[Line] = [[(f" {self._of.TITLE}", "title")], []]
        lines += paragraph(self._of.HELP, room, indent=1)
        lines += [[], [(" Keys", "title")]]
        lines += [[(f" {keys:<{widest}}  ", "accent"), does] for keys, does in self._keys]
        lines.append(
            [(f" {'1 to 9, 0':<{widest}}  ", "accent"), "the screens, as their tabs stand"]
        )
        lines += [[], [(" Letters: what holds work on the device back", "title")]]
        lines += [
            [(f" {letter}  ", bound), f"{bound}: {meaning}"]
            for bound, (letter, meaning) in BOUNDS.items()
        ]
        return [*lines, [], [(" esc closes this page", "dim")]]
