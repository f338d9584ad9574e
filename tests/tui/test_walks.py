"""The way a person goes: from the worst finding to its line, its work, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from terminal_walks import drawn, page, press, walk
from textual.pilot import Pilot

from builders import H100, kernel, launch, op, step, write_trace
from neuron_explorer.analyzers import analyzers
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.lanes import Lanes
from neuron_explorer.tui.picture import settled
from neuron_explorer.tui.screens import screens


async def there_and_back(pilot: Pilot[int], explorer: Explorer) -> None:
    assert "worst line models/resnet.py:89  16.3 ms on the device" in page(explorer)
    await press(pilot, "w")
    assert "torchvision/models/resnet.py:89 in forward" in page(explorer)
    await press(pilot, "t")
    assert explorer.shown == "timeline"
    assert "resnet.py:89" in page(explorer)
    lanes = explorer.screen.query_one(Lanes)
    of_line = explorer.state.event
    await press(pilot, "u")
    assert lanes.selected is not None
    assert lanes.selected.mark == "launch"
    await press(pilot, "d")
    assert lanes.selected.key == of_line
    await press(pilot, "s")
    assert explorer.shown == "source"
    await press(pilot, "escape", "escape", "escape")
    assert explorer.shown == "overview"


async def prove(pilot: Pilot[int], explorer: Explorer) -> None:
    """A finding opens its evidence, and its query runs."""
    await press(pilot, "j", "j", "enter")
    finding = explorer.state.findings[2]
    assert explorer.shown == "evidence"
    assert finding.title[:40] in page(explorer)
    assert "Change" in page(explorer)
    await press(pilot, "G")
    assert "step" in page(explorer)
    await press(pilot, "x")
    assert explorer.shown == "sql"
    assert " rows" in page(explorer)
    await press(pilot, "tab", "1")
    assert explorer.shown == "overview"


async def zoom(pilot: Pilot[int], explorer: Explorer) -> None:
    """From the whole run to single nanoseconds, and from event to event."""
    await press(pilot, "3")
    lanes = explorer.screen.query_one(Lanes)
    await press(pilot, "a")
    whole = lanes.window
    assert whole.end_ns - whole.start_ns >= 86_000_000
    await press(pilot, "right", "right", "down", "up")
    await pilot.press(*["plus"] * 12)
    await settled(pilot)
    assert lanes.window.cell_ns == 1
    assert lanes.selected is not None
    assert lanes.selected.start_ns < lanes.window.end_ns
    await press(pilot, "L")
    assert lanes.window.start_ns > whole.start_ns
    await press(pilot, "a", "g")
    assert lanes.window == whole
    before = lanes.selected.start_ns
    await press(pilot, "full_stop")
    assert lanes.selected.name.startswith("ProfilerStep")
    await pilot.press("slash", *"NCCL")
    await press(pilot, "enter")
    assert "nccl" in lanes.selected.name.lower()
    assert lanes.selected.start_ns > before


async def dig(pilot: Pilot[int], explorer: Explorer) -> None:
    """Ops grouped, sorted, filtered, and followed to the timeline and the source."""
    await press(pilot, "4")
    assert "by kernel  sorted by total" in page(explorer)
    await press(pilot, "g", "s")
    assert "by op  sorted by count" in page(explorer)
    await pilot.press("slash", *"norm")
    await press(pilot, "enter")
    rows = [line for line in drawn(explorer)[4:-1] if line]
    assert rows
    assert all("norm" in line for line in rows)
    await press(pilot, "enter")
    assert explorer.shown == "timeline"
    await press(pilot, "4", "escape", "g", "g")
    assert "by line" in page(explorer)
    await press(pilot, "enter")
    assert explorer.shown == "source"


def test_walks_through_a_real_trace(checkpointing: Path) -> None:
    walk([checkpointing], there_and_back, prove, zoom, dig)


@pytest.fixture
def few_analyzers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests look at is not what the analyzers find."""
    few = {name: analyzers()[name] for name in ("device_idle", "trace_health")}
    monkeypatch.setattr("neuron_explorer.tui.app.analyzers", lambda: few)


@pytest.mark.usefixtures("few_analyzers")
def test_help_palette_colours_and_a_storm_of_sizes(tiny: Path) -> None:
    async def read(pilot: Pilot[int], explorer: Explorer) -> None:
        entries = {command.title for command in explorer.get_system_commands(explorer.screen)}
        for name, kind in screens().items():
            explorer.action_open(name)
            await press(pilot, "f1")
            text = " ".join(page(explorer).split())
            assert " ".join(kind.HELP.split())[:60] in text
            assert len(kind.HELP) > 60
            await press(pilot, "escape")
            assert not kind.ORDER or kind.TITLE in entries

    async def shake(pilot: Pilot[int], explorer: Explorer) -> None:
        for name in screens():
            explorer.action_open(name)
            for size in ((40, 10), (200, 60), (20, 6), (80, 24), (1, 1), (80, 24)):
                await pilot.resize_terminal(*size)
            await press(pilot, "D" if name != "sql" else "down")
            assert all(len(line) <= 80 for line in drawn(explorer))

    walk([tiny], read, shake, size=(100, 50))


# ---- what is missing is said ----------------------------------------------------


MISSING: dict[str, tuple[list[Any], dict[str, Any], dict[str, str]]] = {
    "nothing at all": (
        [],
        {},
        {
            "overview": "No device time in this trace",
            "source": "with_stack=True",
            "timeline": "record one with torch.profiler",
            "ops": "record with ProfilerActivity",
            "modules": "record with with_modules=True",
            "roofline": "record with record_shapes=True",
            "memory": "record with profile_memory=True",
            "compile": "neuron_explorer.profile() records torch.compile",
        },
    ),
    "no device events": (
        [step(1, 0, 500), launch(5, 10)],
        {"devices": []},
        {"overview": "No device time in this trace", "ops": "record with ProfilerActivity"},
    ),
    "no sources and no shapes": (
        [step(1, 0, 500), op(0, 50), launch(5, 10, op_id=1), kernel(50, 100, op_id=1, launch_id=2)],
        {"devices": [H100]},
        {
            "overview": "no source lines in this trace: record with with_stack=True",
            "source": "No source lines in this trace",
            "timeline": "bound unknown",
        },
    ),
}


@pytest.mark.usefixtures("few_analyzers")
@pytest.mark.parametrize("lacks", MISSING)
def test_each_screen_says_what_is_missing(tmp_path: Path, lacks: str) -> None:
    rows, metadata, said = MISSING[lacks]

    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        for name in screens():
            explorer.action_open(name)
            await press(pilot, "down", "up")
            assert said.get(name, "") in " ".join(page(explorer).split()), page(explorer)

    walk([write_trace(tmp_path / "t.parquet", rows, metadata)], look)


@pytest.mark.usefixtures("few_analyzers")
def test_names_are_never_markup_on_any_screen(tmp_path: Path) -> None:
    names = ["x_[/red]_0", "[memory]", "x[/", "tab\there\x1b[2J", "核函数" * 30, "n" * 5_000]
    rows: list[Any] = [step(1, 0, 10_000)]
    for place, name in enumerate(names):
        file = {"source_file": f"/tmp/{name[:40]}.py", "source_line": place + 1}
        rows.append(op(place * 100, 50, name=name, module=name, parent_id=0, **file))
        rows.append(kernel(place * 100, 50, name=name, op_id=len(rows) - 1, step=1, **file))

    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        seen = ""
        for name in screens():
            explorer.action_open(name)
            await press(pilot, "down", "right", "down")
            seen += page(explorer)
            assert all(cell_len(line) <= 100 for line in drawn(explorer))
        for part in ("x_[/red]_0", "[memory]", "x[/", r"tab\there\x1b[2J", "核函数", "nnn…nnn"):
            assert part in seen
        assert "\x1b" not in seen

    walk([write_trace(tmp_path / "t.parquet", rows)], look, size=(100, 24))


def test_a_trace_that_cannot_be_opened_ends_the_app_with_the_reason(tmp_path: Path) -> None:
    explorer = walk([tmp_path / "nowhere.parquet"])
    assert "no trace at" in str(explorer.failure)


@pytest.mark.usefixtures("few_analyzers")
def test_a_foreign_file_is_imported_on_the_way() -> None:
    source = Path(__file__).parents[1] / "data" / "tiny.kineto.json"

    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        await press(pilot, "3")
        assert "stream 7 work" in page(explorer)
        assert "tiny.kineto.json" in explorer.importing.label

    walk([source], look)
