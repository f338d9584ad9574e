"""Walks through a trace in the terminal interface, without a terminal.

    walk([trace], there_and_back, size=(80, 24))

A walk is a coroutine that presses keys and looks at the cells.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.picture import settled

Walk = Callable[[Pilot[int], Explorer], Awaitable[None]]


def walk(files: Sequence[str | Path], *walks: Walk, size: tuple[int, int] = (80, 24)) -> Explorer:
    """Open a trace, wait until every question is answered, go for the walks, and leave."""
    explorer = Explorer([str(file) for file in files])
    try:
        asyncio.run(_walk(explorer, walks, size))
    finally:
        explorer.close()
    return explorer


async def _walk(explorer: Explorer, walks: Sequence[Walk], size: tuple[int, int]) -> None:
    async with explorer.run_test(size=size) as pilot:
        await settled(pilot)
        for each in walks:
            await each(pilot, explorer)


class Sitting:
    """An app that stays open for many walks; it lives in a thread of its own."""

    def __init__(self, files: Sequence[str | Path], size: tuple[int, int]) -> None:
        self._explorer = Explorer([str(file) for file in files])
        self._size = size
        self._walks: queue.SimpleQueue[tuple[Walk, Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._sit()), daemon=True)
        self._thread.start()

    def go(self, *walks: Walk) -> None:
        """Go for walks one after the other; what one raises is raised here."""
        for each in walks:
            walked: Future[None] = Future()
            self._walks.put((each, walked))
            walked.result(timeout=120)

    def end(self) -> None:
        self._walks.put(None)
        self._thread.join(30)
        self._explorer.close()

    async def _sit(self) -> None:
        # walks run in this very task: Textual knows its app by the context of the task
        async with self._explorer.run_test(size=self._size) as pilot:
            await settled(pilot)
            while (asked := await asyncio.to_thread(self._walks.get)) is not None:
                walk_on, walked = asked
                try:
                    await walk_on(pilot, self._explorer)
                except BaseException as problem:  # noqa: BLE001 - raised in the thread that waits
                    walked.set_exception(problem)
                else:
                    _settle(walked, self._explorer._exception)


def _settle(walked: Future[None], problem: BaseException | None) -> None:
    if problem is None:
        walked.set_result(None)
    else:
        walked.set_exception(problem)


@contextmanager
def sitting(files: Sequence[str | Path], size: tuple[int, int] = (80, 24)) -> Iterator[Sitting]:
    """Keep an app open: opening a trace is what costs most of a walk."""
    app = Sitting(files, size)
    try:
        yield app
    finally:
        app.end()


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press keys one by one, each once what the one before asked for is there."""
    for key in keys:
        # not pilot.press(): that sleeps 40 ms or more for each key
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await settled(pilot)


def drawn(explorer: Explorer) -> list[str]:
    """The cells in sight as lines of text, without blanks at their ends."""
    strips = explorer.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def page(explorer: Explorer) -> str:
    return "\n".join(drawn(explorer))
