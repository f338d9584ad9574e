"""A screen drawn without a terminal, as SVG: for documents, reports and agents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual.pilot import Pilot

from neuron_explorer.errors import UsageError
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.screens import screens

_QUIET_LOOKS = 6
"""Looks in a row that find no open question before a screen counts as finished: each lets every
widget take the messages it has, and a message may cause another."""

_MOMENT_S = 0.005


def picture(  # noqa: PLR0913  one parameter an option
    files: Sequence[str],
    screen: str,
    size: tuple[int, int],
    *,
    device: str | None = None,
    raw: bool = False,
    light: bool = False,
    others: Sequence[str] = (),
) -> str:
    """The SVG of one screen once every question it asked is answered.

    Args:
        files: As `load` takes them.
        screen: Name of a screen.
        size: Columns and rows.
        device: Chip to judge by.
        raw: Times as recorded.
        light: Dark on light.
        others: Files of a trace to compare with.

    Raises:
        UsageError: there is no such screen.
        NeuronExplorerError: the trace cannot be opened.
    """
    if screen not in screens():
        raise UsageError(
            f"there is no screen {screen!r}", hint=f"there are: {', '.join(screens())}"
        )
    explorer = Explorer(files, device, raw=raw, light=light, others=others)
    svg = asyncio.run(_drawn(explorer, screen, size))
    explorer.close()
    if explorer.failure is not None:
        raise explorer.failure
    return svg


async def settled(pilot: Pilot[int]) -> None:
    """Wait until the trace is open and nothing is asked any more."""
    explorer, quiet = pilot.app, 0
    assert isinstance(explorer, Explorer)
    while quiet < _QUIET_LOOKS and explorer.failure is None:
        # not pause(): that sleeps until the process is idle, and longer on a busy machine
        await pilot.pause(0)
        busy = not explorer.opened or explorer.pending or explorer.state.analyzers_left != 0
        quiet = 0 if busy else quiet + 1
        if busy:
            await asyncio.sleep(_MOMENT_S)


async def _drawn(explorer: Explorer, screen: str, size: tuple[int, int]) -> str:
    async with explorer.run_test(size=size) as pilot:
        await settled(pilot)
        if explorer.failure is not None:
            return ""
        if screen == "evidence" and explorer.state.findings:
            explorer.state.select_finding(explorer.state.findings[0])
        explorer.action_open(screen)
        await settled(pilot)
        return explorer.export_screenshot()
