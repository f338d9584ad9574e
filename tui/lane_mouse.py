"""The mouse on a timeline: a click selects, the wheel zooms and pans, dragging chooses a range."""

from __future__ import annotations

from typing import Any

from textual import events

from neuron_explorer.tui.canvas import Canvas
from neuron_explorer.tui.lane_range import RangeChoice


class LaneMouse(Canvas):
    """What the mouse does; where that leads is the timeline's own."""

    def __init__(self, **others: Any) -> None:
        super().__init__(**others)
        self.choice = RangeChoice()

    def time_at(self, x: int) -> int | None:
        """Time at a column of the widget; None where no time is drawn."""
        raise NotImplementedError

    def point_at(self, x: int, y: int) -> None:
        """Select what is drawn there."""
        raise NotImplementedError

    def zoom_at(self, x: int, by: int) -> None:
        """Zoom, with the time at a column staying there."""
        raise NotImplementedError

    def action_pan(self, by: int) -> None:
        """Move the window by half its width."""
        raise NotImplementedError

    def ranged(self) -> None:
        """Another range is chosen."""
        raise NotImplementedError

    def on_mouse_down(self, event: events.MouseDown) -> None:
        at = self.time_at(event.x)
        if at is not None:
            self.choice.grab(at)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        at = self.time_at(event.x)
        if at is not None and self.choice.drag(at):
            self.ranged()

    def on_mouse_up(self) -> None:
        self.choice.drop()
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        if not self.choice.dragged():
            self.point_at(event.x, event.y)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.zoom_at(event.x, 2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.zoom_at(event.x, -2)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.action_pan(-1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.action_pan(1)
