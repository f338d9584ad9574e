"""How far a long job is: what the workers call, and the bar a terminal shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_ROOMY = 72
"""Cells a line needs to show a bar, bytes and rate too; a narrower one has share and time."""

_BESIDE_LABEL, _BESIDE_LABEL_NARROW = 54, 14
"""Cells that the rest takes, so that a long file name pushes nothing out of the line."""

_BAR = 12


class Progress(Protocol):
    """What a long job tells whoever watches; calls are cheap and never raise."""

    def start(self, label: str, total_bytes: int | None = None) -> None:
        """A stage begins: `reading trace.json`; the total is NULL where it is unknown."""

    def update(self, done_bytes: int, events: int = 0) -> None:
        """Bytes and events so far in this stage: absolute numbers, not increments."""

    def finish(self) -> None:
        """The stage is over."""


class Silent:
    """Progress that nobody watches."""

    def start(self, label: str, total_bytes: int | None = None) -> None:
        pass

    def update(self, done_bytes: int, events: int = 0) -> None:
        pass

    def finish(self) -> None:
        pass


class TerminalBar:
    """One bar on stderr: bytes, events a second, time that remains. Nothing before a stage."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._task = bars.add_task("", start=False, visible=False, rate="")

    def start(self, label: str, total_bytes: int | None = None) -> None:
        self._bars.start()
        shown = _cut(label, self._bars.console.width)
        self._bars.reset(
            self._task, total=total_bytes, description=shown, visible=True, rate="", start=True
        )

    def update(self, done_bytes: int, events: int = 0) -> None:
        elapsed = self._bars.tasks[0].elapsed or 0.0
        rate = f"{events / elapsed:,.0f} events/s" if events and elapsed else ""
        self._bars.update(self._task, completed=done_bytes, rate=rate)

    def finish(self) -> None:
        self._bars.update(self._task, visible=False)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """A bar on stderr where a person watches it, else silence; gone when the block ends."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield Silent()
        return
    bars = _rich_bars()
    try:
        yield TerminalBar(bars)
    finally:
        bars.stop()


def _cut(label: str, width: int) -> str:
    room = max(width - (_BESIDE_LABEL if width >= _ROOMY else _BESIDE_LABEL_NARROW), 8)
    return label if len(label) <= room else f"{label[: room - 3]}..."


def _rich_bars() -> RichProgress:
    from rich.console import Console  # noqa: PLC0415  only where a bar is shown
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    label = TextColumn("{task.description}", markup=False)
    columns: list[ProgressColumn] = [label, TaskProgressColumn(), TimeRemainingColumn()]
    if console.width >= _ROOMY:
        rate = TextColumn("{task.fields[rate]}", markup=False)
        bar, done = BarColumn(bar_width=_BAR), DownloadColumn()
        columns = [label, bar, done, rate, TimeRemainingColumn()]
    return Progress(*columns, console=console, transient=True)
