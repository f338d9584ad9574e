"""A range of time that the reader chooses on a timeline, with keys or by dragging the mouse."""

from __future__ import annotations

from neuron_explorer.tui.timeline_data import Range, Span


class RangeChoice:
    """From the first key or mouse button to the last; every method says whether it changed."""

    def __init__(self) -> None:
        self.range: Range | None = None
        self._anchor: Range | None = None
        """What the range grows from while it is being chosen."""
        self._grabbed: int | None = None
        """Where the mouse button went down."""
        self._moved = False

    def press(self, span: Span) -> bool:
        """Begin at an event, or end at the one that the range has grown to."""
        if self._anchor is not None:
            self._anchor = None
            return False
        self._anchor = self.range = Range(span.start_ns, span.end_ns)
        return True

    def reach(self, span: Span) -> bool:
        """Grow to the event that is selected now."""
        if self._anchor is None:
            return False
        self.range = Range(
            min(self._anchor.start_ns, span.start_ns), max(self._anchor.end_ns, span.end_ns)
        )
        return True

    def grab(self, at_ns: int) -> None:
        self._grabbed, self._moved = at_ns, False

    def drag(self, at_ns: int) -> bool:
        if self._grabbed is None or at_ns == self._grabbed:
            return False
        self._anchor, self._moved = None, True
        self.range = Range(min(self._grabbed, at_ns), max(self._grabbed, at_ns))
        return True

    def drop(self) -> None:
        self._grabbed = None

    def dragged(self) -> bool:
        """Whether the last button that went down chose a range: then it is no click."""
        return self._moved

    def clear(self) -> bool:
        had = self.range is not None
        self.range = self._anchor = None
        return had
