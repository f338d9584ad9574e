"""The lines above and below every screen: where one is, and which keys do what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from textual import events
from textual.strip import Strip
from textual.widgets import Input, TextArea

from neuron_explorer.reports.evidence import device_names
from neuron_explorer.tui.canvas import Canvas
from neuron_explorer.tui.tabs import tabs
from neuron_explorer.tui.text import Line, Piece, cells, safe

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer
    from neuron_explorer.tui.screen import TraceScreen

_STATUS = {"ok": "good", "warn": "warn", "bad": "bad"}
_SPIN = "|/-\\"


class TopBar(Canvas):
    """Trace, device and health; then the screens with their number keys."""

    DEFAULT_CSS = "TopBar { height: 2; dock: top; }"

    def render_line(self, y: int) -> Strip:
        explorer = cast("Explorer", self.app)
        if y == 0:
            return self.drawn(self._first(explorer, self.size.width), "bar")
        return self.drawn([piece for piece, _ in self._tabs(explorer)], "bar")

    def on_click(self, event: events.Click) -> None:
        """A click on a screen's name opens it."""
        if event.y != 1:
            return
        explorer, left = cast("Explorer", self.app), 0
        for piece, name in self._tabs(explorer):
            left += cells([piece])
            if event.x < left:
                explorer.action_open(name)
                return

    def _tabs(self, explorer: Explorer) -> Iterable[tuple[Piece, str]]:
        return tabs(explorer.kinds, explorer.shown, self.size.width)

    def _first(self, explorer: Explorer, width: int) -> Line:
        seen = explorer.state.overview
        right: list[Piece] = []
        if seen is not None:
            right += [safe(device_names(seen), max(width // 2, 12)), "  "]
            right += [("health ", "dim"), (seen.status, _STATUS[seen.status]), " "]
        if explorer.at_work:
            right.append((f"{_SPIN[explorer.turn % len(_SPIN)]} working ", "warn"))
        room = width - cells(right) - 2
        files = safe(", ".join(explorer.state.files), max(room, 8))
        gap = " " * max(width - cells(right) - cells([files]) - 1, 1)
        return [" ", (files, "title"), gap, *right]


class KeyBar(Canvas):
    """The keys that fit, the most useful first; or what went wrong, until the next key."""

    DEFAULT_CSS = "KeyBar { height: 1; dock: bottom; }"

    def render_line(self, y: int) -> Strip:
        _ = y
        explorer = cast("Explorer", self.app)
        if explorer.said:
            return self.drawn([(f" {safe(explorer.said)}", explorer.said_role)], "bar")
        return self.drawn(self._keys(self.size.width), "bar")

    def _keys(self, width: int) -> Line:
        shown: list[Piece] = [" "]
        typing = isinstance(self.screen.focused, Input | TextArea)
        last: list[Piece] = [("f1 " if typing else "? ", "accent"), ("help ", "dim")]
        for key, does in cast("TraceScreen", self.screen).keys_shown():
            more: list[Piece] = [(f"{key} ", "accent"), (f"{does}  ", "dim")]
            if cells(shown) + cells(more) + cells(last) > width:
                break
            shown += more
        gap = width - cells(shown) - cells(last)
        return [*shown, " " * max(gap, 0), *last]
