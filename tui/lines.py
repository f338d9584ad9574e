"""A page of finished lines that scrolls: what a screen says in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip

from neuron_explorer.tui.canvas import Canvas
from neuron_explorer.tui.text import Line

Layout = Callable[[int, int], Sequence[Line]]
"""Makes the lines for a width and a height in cells."""


class Lines(Canvas):
    """Draws what its layout makes of the room there is; scrolls when that is not enough."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll(1)", "down", show=False),
        Binding("up,k", "scroll(-1)", "up", show=False),
        Binding("pagedown,ctrl+f,space", "scroll_page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "scroll_page(-1)", "page up", show=False),
        Binding("home,g", "scroll(-1000000)", "top", show=False),
        Binding("end,G", "scroll(1000000)", "bottom", show=False),
    ]

    def __init__(
        self,
        layout: Layout | None = None,
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        focus: bool = False,
        ruled: bool = False,
    ) -> None:
        super().__init__(id=id)
        self.can_focus = focus
        self._ruled = ruled
        """Whether a rule above sets it apart. Drawn here: borders escape the ASCII filter."""
        self._layout: Layout = layout or (lambda _width, _height: ())
        self._lines: Sequence[Line] = ()
        self._top = 0

    def show(self, layout: Layout) -> None:
        """Draw something else, from its top."""
        self._layout, self._top = layout, 0
        self.redraw()

    def redraw(self) -> None:
        """Lay out again: what the layout reads has changed."""
        width, height = self.size
        rule: list[Line] = [[("─" * width, "rule")]] if self._ruled else []
        self._lines = [*rule, *self._layout(width, height - len(rule))]
        self._top = max(0, min(self._top, len(self._lines) - self.size.height))
        self.refresh()

    def on_resize(self) -> None:
        self.redraw()

    def render_line(self, y: int) -> Strip:
        place = self._top + y
        return self.drawn(self._lines[place] if place < len(self._lines) else ())

    def action_scroll(self, lines: int) -> None:
        self._top += lines
        self._top = max(0, min(self._top, len(self._lines) - self.size.height))
        self.refresh()

    def action_scroll_page(self, pages: int) -> None:
        self.action_scroll(pages * max(self.size.height - 1, 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll(-3)
