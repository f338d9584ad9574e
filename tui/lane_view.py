"""Which stretch of a run a timeline shows: the whole of it, or down to a nanosecond a cell."""

from __future__ import annotations

from neuron_explorer.tui.timeline_data import Range, Span, Window


class View:
    """A window that stays within the run; each move is given as its start and its length (ns)."""

    def __init__(self) -> None:
        self.run = Range(0, 1)
        self.window = Window(0, 1, 1)

    def look(self, start_ns: int, length_ns: int, columns: int) -> None:
        """Move the window as near to there as the run and whole nanoseconds let it."""
        first, last = self.run
        cell = max(-(-min(length_ns, last - first) // columns), 1)
        start = max(min(start_ns, last - cell * columns), first)
        self.window = Window(start, cell, columns)

    def zoomed(self, by: int, about_ns: int) -> tuple[int, int]:
        """`by` times nearer, or further where it is below 0; a point in time stays in place."""
        length = self.window.length_ns
        wider = length // by if by > 0 else length * -by
        share = (about_ns - self.window.start_ns) / length
        return int(about_ns - wider * share), wider

    def around(self, span: Span, columns: int, *, zoom: bool) -> tuple[int, int] | None:
        """What shows an event, zoomed where it would be a speck or too wide; None = as it is."""
        length, view = span.end_ns - span.start_ns, self.window.length_ns
        if zoom or length < self.window.cell_ns or length > view:
            view = max(length * 8, columns)
        inside = self.window.start_ns <= span.start_ns and span.end_ns <= self.window.end_ns
        if inside and view == self.window.length_ns:
            return None
        return (span.start_ns + span.end_ns) // 2 - view // 2, view

    def middle(self, span: Span | None) -> int:
        """Of an event as far as it is in sight, else of the window."""
        window = self.window
        if span is not None and span.start_ns < window.end_ns and span.end_ns > window.start_ns:
            begin, end = max(span.start_ns, window.start_ns), min(span.end_ns, window.end_ns)
            return (begin + end) // 2
        return (window.start_ns + window.end_ns) // 2
