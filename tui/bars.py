"""The lines above and below every screen: where one is, and which keys do what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from textual import events
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, TextArea

from neuron_explorer.reports.evidence import device_names
from neuron_explorer.tui.text import Line, Piece, cells, safe, strip

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer
    from neuron_explorer.tui.screen import TraceScreen

_STATUS = {"ok": "good", "warn": "warn", "bad": "bad"}
_SPIN = "|/-\\"
_READABLE = 3
"""Cells below which a title says nothing."""


class TopBar(Widget):
    """Trace, device and health; then the screens with their number keys."""

    DEFAULT_CSS = "TopBar { height: 2; dock: top; }"

    def render_line(self, y: int) -> Strip:
        explorer = cast("Explorer", self.app)
        width = self.size.width
        if y == 0:
            return strip(self._first(explorer, width), width, explorer.ink, "bar", self.rich_style)
        return strip(self._tabs(explorer, width), width, explorer.ink, "bar", self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """A click on a screen's name opens it."""
        if event.y != 1:
            return
        explorer, left = cast("Explorer", self.app), 0
        for piece, name in self._named(explorer, self.size.width):
            left += cells([piece])
            if event.x < left:
                explorer.action_open(name)
                return

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

    def _tabs(self, explorer: Explorer, width: int) -> Line:
        return [piece for piece, _ in self._named(explorer, width)]

    def _named(self, explorer: Explorer, width: int) -> Iterator[tuple[Piece, str]]:
        most = _title_cells([kind.TITLE for kind in explorer.kinds], width)
        for place, kind in enumerate(explorer.kinds, 1):
            here = explorer.shown == kind.NAME
            shown = kind.TITLE if here and most < _READABLE else kind.TITLE[:most]
            yield (
                (f" {place % 10} {shown} ".replace("  ", " "), "accent:fill" if here else "dim"),
                kind.NAME,
            )


def _title_cells(titles: Sequence[str], width: int) -> int:
    """Most cells of a title with which all fit; 0 = only the screen in front has room for one."""
    for most in range(max(map(len, titles)), _READABLE - 1, -1):
        if sum(min(len(title), most) + 4 for title in titles) <= width:
            return most
    return 0


class KeyBar(Widget):
    """The keys that fit, the most useful first; or what went wrong, until the next key."""

    DEFAULT_CSS = "KeyBar { height: 1; dock: bottom; }"

    def render_line(self, y: int) -> Strip:
        _ = y
        explorer, width = cast("Explorer", self.app), self.size.width
        if explorer.said:
            said = safe(explorer.said)
            return strip(
                [(f" {said}", explorer.said_role)], width, explorer.ink, "bar", self.rich_style
            )
        return strip(self._keys(width), width, explorer.ink, "bar", self.rich_style)

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
