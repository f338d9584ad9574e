"""Every screen as it looks, colours and all, against the pictures tests/tui/golden/*.svg.

The findings are written here: pictures must change when a screen does, not when an analyzer says
something in other words. `pytest tests/tui --update-pictures` draws them anew; look at them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from golden_pictures import check_picture

from neuron_explorer.analyzers import Report
from neuron_explorer.findings import Finding
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.picture import settled
from neuron_explorer.tui.screens import screens

SIZES = ((80, 24), (140, 45), (40, 10))
DRAWN = [*screens(), "help", "light"]
"""The last is the first screen, dark on light."""

TINY_STARTS_NS = 1_790_857_026_001_000_000
FOUND = [
    Finding(
        id="fusable-1",
        analyzer="fusable",
        severity="warning",
        title="Eager ops a compiler would fuse: mul, add",
        message="2 ops move 470 MB through memory. The tensor between them is read only once.",
        advice="Put the two lines into one function and compile it with torch.compile.",
        rank=0,
        source_file="model.py",
        source_line=12,
        source_text="    y = x * 2 + x",
        device_time_ns=125_000,
        share=0.397,
        saving_low_ns=30_000,
        saving_high_ns=80_000,
        saving_basis="bytes that need not move, over the bandwidth reached",
        confidence="high",
        evidence={
            "bytes_saved": 268_435_456,
            "ops": 2,
            "floor_ns": 45_000,
            "start_ns": TINY_STARTS_NS + 60_000,
        },
        event_ids=(8, 9),
        sql="SELECT * FROM chains",
    ),
    Finding(
        id="nothing-1",
        analyzer="nothing",
        severity="info",
        title="[memory] x_[/red]_0 is no markup",
        message="Names are text.",
        advice="",
    ),
]


@pytest.fixture(scope="module")
def pictures(tiny: Path) -> dict[str, str]:
    """Each screen at each size, by the name of its golden file."""
    report = Report(findings=FOUND, not_applicable=[], ran=["fusable"], params={})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tiny.parent)
        patch.setenv("LANG", "C.UTF-8")
        patch.delenv("LC_ALL", raising=False)
        patch.setattr("neuron_explorer.tui.judging.analyzers", lambda: {"fusable": None})
        patch.setattr(
            "neuron_explorer.tui.judging.run", lambda _trace, only: report if only else None
        )
        return asyncio.run(_draw_all(tiny.name))


async def _draw_all(file: str) -> dict[str, str]:
    """One app for all sizes: resizing is part of what is shown to work."""
    explorer, found = Explorer([file]), {}
    async with explorer.run_test(size=SIZES[0]) as pilot:
        await settled(pilot)
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            for name in DRAWN:
                _bring(explorer, name)
                await settled(pilot)
                found[f"{name}-{width}x{height}"] = explorer.export_screenshot()
            explorer.action_light_or_dark()
    explorer.close()
    return found


def _bring(explorer: Explorer, name: str) -> None:
    """Show one of the pictures; a help page covers the screen before it."""
    if name == "help":
        explorer.action_explain()
    elif name == "light":
        explorer.action_light_or_dark()
        explorer.action_open("overview")
    else:
        explorer.action_open(name)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", DRAWN)
def test_a_screen_looks_as_it_did(
    pictures: dict[str, str],
    name: str,
    size: tuple[int, int],
    request: pytest.FixtureRequest,
) -> None:
    picture = f"{name}-{size[0]}x{size[1]}"
    check_picture(picture, pictures[picture], request)
