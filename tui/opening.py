"""What is shown until there is a trace: how far the import is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen

from neuron_explorer.reports import formats
from neuron_explorer.trace import Trace
from neuron_explorer.tui.data import StoppedError
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.text import Line, safe

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer


_LEAST_BYTES, _MOST_BYTES, _BYTES_AN_EVENT = 200 * 10**6, 2 * 1024**3, 300
"""Of DuckDB's memory: a terminal interface stays open for hours beside other programs."""


class Import:
    """Progress of an import: written by its thread, read by the screen."""

    def __init__(self) -> None:
        self.label = ""
        self.total: int | None = None
        self.done = 0
        self.events = 0
        self.began = time.monotonic()
        self.abandoned = False
        """The reader has left, so the import shall end."""

    def start(self, label: str, total_bytes: int | None = None) -> None:
        self.label, self.total, self.done, self.events = label, total_bytes, 0, 0
        self.began = time.monotonic()

    def update(self, done_bytes: int, events: int = 0) -> None:
        if self.abandoned:
            raise StoppedError
        self.done, self.events = done_bytes, events

    def finish(self) -> None:
        self.done = self.total or self.done


class OpeningScreen(Screen[None]):
    """The files, and a bar once an import has begun."""

    DEFAULT_CSS = "OpeningScreen { padding: 1 2; }"
    LOOKS_PER_S: ClassVar[float] = 10

    def compose(self) -> ComposeResult:
        yield Lines(self._lines)

    def on_mount(self) -> None:
        self.set_interval(1 / self.LOOKS_PER_S, self.query_one(Lines).redraw)

    def _lines(self, width: int, height: int) -> list[Line]:
        _ = height
        explorer = cast("Explorer", self.app)
        seen = explorer.importing
        lines: list[Line] = [
            [("opening ", "dim"), (safe(", ".join(explorer.state.files)), "title")]
        ]
        if seen.label:
            part = seen.done / seen.total if seen.total else None
            lines += [[], [safe(seen.label, width)], [(_bar(part, width), "good")]]
            rate = seen.events / max(time.monotonic() - seen.began, 0.001)
            lines.append(
                [(f"{formats.count(seen.events)} events, {formats.count(rate)} a second", "dim")]
            )
        return [*lines, [], [("q ", "accent"), ("leave", "dim")]]


def _bar(part: float | None, width: int) -> str:
    room = max(min(width - 8, 60), 8)
    return formats.bar(part, room) + ("" if part is None else f" {formats.share(part)}")


def memory_bytes(trace: Trace) -> int:
    """Enough for the views of the trace without spilling, and not much more."""
    summaries = [facts.get("summary") or {} for facts in trace.metadata.values()]
    events = sum(summary.get("events") or 0 for summary in summaries)
    return min(max(events * _BYTES_AN_EVENT, _LEAST_BYTES), _MOST_BYTES)
