"""Walks through a trace in the terminal interface, without a terminal.

    walk([trace], there_and_back, size=(80, 24))

A walk is a coroutine that presses keys and looks at the cells.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

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


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press keys one by one, each once what the one before asked for is there."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def drawn(explorer: Explorer) -> list[str]:
    """The cells in sight as lines of text, without blanks at their ends."""
    strips = explorer.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def page(explorer: Explorer) -> str:
    return "\n".join(drawn(explorer))
