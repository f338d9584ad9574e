"""How an answer comes onto the screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.console import RenderableType
from terminal_walks import press
from textual.screen import Screen

from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.picture import settled


class Painted(Explorer):
    """Counts its paints."""

    paints = 0

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        self.paints += 1


def test_one_paint_shows_all_that_an_answer_changes(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A widget tells its screen of it in a message, and that would be a second paint, later."""
    monkeypatch.setattr("neuron_explorer.tui.judging.analyzers", dict)
    # nothing may turn meanwhile in the bar above
    monkeypatch.setattr("neuron_explorer.tui.asking.PATIENCE_S", 60)

    async def look() -> dict[str, int]:
        explorer, paints = Painted([str(tiny)]), {}
        async with explorer.run_test(size=(100, 30)) as pilot:
            await settled(pilot)
            await press(pilot, "3")
            for key in ("plus", "L", "minus"):
                await asyncio.sleep(0.05)
                explorer.paints = 0
                await press(pilot, key)
                await asyncio.sleep(0.05)
                paints[key] = explorer.paints
        explorer.close()
        return paints

    assert asyncio.run(look()) == {"plus": 1, "L": 1, "minus": 1}
