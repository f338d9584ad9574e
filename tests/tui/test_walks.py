"""The way a person goes: from the worst finding to its line, its work, and back."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from terminal_walks import Sitting, Walk, drawn, page, press, sitting, walk
from textual.pilot import Pilot

import neuron_explorer
from builders import H100, kernel, launch, op, step, write_trace
from neuron_explorer.analyzers import analyzers
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.lanes import Lanes
from neuron_explorer.tui.picture import settled
from neuron_explorer.tui.state import EventKey

FEW = {name: analyzers()[name] for name in ("device_idle", "trace_health")}


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
    await press(pilot, *["plus"] * 12)
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
    await press(pilot, "slash", *"NCCL", "enter")
    assert "nccl" in lanes.selected.name.lower()
    assert lanes.selected.start_ns > before
    await press(pilot, "escape")
    assert explorer.shown == "timeline"


async def dig(pilot: Pilot[int], explorer: Explorer) -> None:
    """Ops grouped, sorted, filtered, and followed to the timeline and the source."""
    await press(pilot, "4")
    assert "by kernel  sorted by total" in page(explorer)
    await press(pilot, "g", "s")
    assert "by op  sorted by count" in page(explorer)
    await press(pilot, "slash", *"norm", "enter")
    rows = [line for line in drawn(explorer)[4:-1] if line]
    assert rows
    assert all("norm" in line for line in rows)
    await press(pilot, "enter")
    assert explorer.shown == "timeline"
    await press(pilot, "4", "escape", "g", "g")
    assert "by line" in page(explorer)
    await press(pilot, "enter")
    assert explorer.shown == "source"


async def measure(pilot: Pilot[int], explorer: Explorer) -> None:
    """A range from one event to another, what happened in it, and the window on it."""
    await press(pilot, "3", "a", "v", "right", "right", "right", "v")
    lanes = explorer.screen.query_one(Lanes)
    chosen = lanes.range
    assert chosen is not None
    assert chosen.end_ns - chosen.start_ns > lanes.window.cell_ns
    assert " range " in page(explorer)
    assert "% busy," in page(explorer)
    await press(pilot, "right")
    assert lanes.range == chosen
    await press(pilot, "z")
    assert lanes.window.start_ns == chosen.start_ns
    assert lanes.window.end_ns - chosen.end_ns < lanes.window.columns
    await press(pilot, "escape")
    assert explorer.screen.query_one(Lanes).range is None
    assert explorer.shown == "timeline"
    await pilot.mouse_down(Lanes, offset=(30, 3))
    await pilot.hover(Lanes, offset=(60, 3))
    await pilot.mouse_up(Lanes, offset=(60, 3))
    await settled(pilot)
    assert lanes.range == (lanes.window.at(10), lanes.window.at(40))
    assert " range " in page(explorer)
    await press(pilot, "escape")


@pytest.fixture(scope="module")
def real(checkpointing: Path) -> Iterator[Sitting]:
    names = (
        "exposed_communication",
        "recomputation_cost",
        "hbm_bound_eager_ops",
        "python_overhead",
    )
    found = {name: analyzers()[name] for name in names}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neuron_explorer.tui.judging.analyzers", lambda: found)
        with sitting([checkpointing]) as app:
            yield app


@pytest.mark.parametrize("walk_on", [there_and_back, prove, zoom, dig, measure])
def test_walks_through_a_real_trace(real: Sitting, walk_on: Walk) -> None:
    real.go(home, walk_on)


PROGRAM = """
import torch


def hand_written_gelu(x):
    cubed = x * x * x
    inner = 0.7978845608 * (x + 0.044715 * cubed)
    return 0.5 * x * (1.0 + torch.tanh(inner))


def train_step(x):
    return hand_written_gelu(x @ x).sum().item()
"""


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """A trace of a program with waste in it, recorded here."""
    torch = pytest.importorskip("torch", reason="needs torch to capture")
    script = tmp_path / "train.py"
    names: dict[str, Any] = {"__name__": "train"}
    script.write_text(PROGRAM)
    exec(compile(PROGRAM, str(script), "exec"), names)
    x = torch.ones(256, 256)
    names["train_step"](x)
    with neuron_explorer.profile(output=tmp_path / "trace.parquet"):
        for _ in range(3):
            names["train_step"](x)
    return tmp_path / "trace.parquet"


@pytest.mark.torch
def test_from_the_worst_finding_of_a_captured_trace_to_its_line_its_work_and_back(
    captured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"handwritten_fused_ops": analyzers()["handwritten_fused_ops"]}
    monkeypatch.setattr("neuron_explorer.tui.judging.analyzers", lambda: found)

    async def go(pilot: Pilot[int], explorer: Explorer) -> None:
        assert "▸ ▲" in page(explorer)
        assert "9 ops spell out GELU" in page(explorer)
        await press(pilot, "enter")
        assert explorer.shown == "evidence"
        assert "cubed = x * x * x" in page(explorer)
        assert "F.gelu" in page(explorer)
        await press(pilot, "s")
        assert explorer.shown == "source"
        assert "train.py:6 in hand_written_gelu" in page(explorer)
        (line,) = [line for line in drawn(explorer) if "cubed = x * x * x" in line]
        assert line.startswith("▸ ▲")
        assert re.search(r"\d[mun]s ", line), "its time on the device"
        assert "inner = 0.7978845608 * " in page(explorer)
        assert "aten::mul" in page(explorer), "what the line ran"
        await press(pilot, "t")
        assert explorer.shown == "timeline"
        selected = explorer.screen.query_one(Lanes).selected
        assert selected is not None
        assert selected.name == "aten::mul"
        assert "train.py:6" in page(explorer)
        await press(pilot, "escape", "escape", "escape")
        assert explorer.shown == "overview"

    walk([captured], go)


async def home(pilot: Pilot[int], explorer: Explorer) -> None:
    explorer.action_open("overview")
    await press(pilot, "home")


@pytest.fixture
def few_analyzers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests look at is not what the analyzers find."""
    monkeypatch.setattr("neuron_explorer.tui.judging.analyzers", lambda: FEW)


# ---- what is missing is said ----------------------------------------------------


MISSING: dict[str, tuple[list[Any], dict[str, Any], dict[str, str]]] = {
    "nothing at all": (
        [],
        {},
        {
            "overview": "No device time: record with ProfilerActivity",
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
        {
            "overview": "No device time: record with ProfilerActivity",
            "ops": "record with ProfilerActivity",
        },
    ),
    "no sources and no shapes": (
        [
            step(1, 0, 500),
            op(0, 50),
            launch(5, 10, op_id=1),
            kernel(50, 100, op_id=1, launch_id=2, cost_note="no_shapes"),
        ],
        {"devices": [H100]},
        {
            "overview": "no source lines: record with with_stack=True or neuron-explorer run",
            "source": "No source lines in this trace",
            "timeline": "bound unknown: the trace has no shape of an argument the formula needs",
        },
    ),
}


@pytest.mark.usefixtures("few_analyzers")
@pytest.mark.parametrize("lacks", MISSING)
def test_each_screen_says_what_is_missing(tmp_path: Path, lacks: str) -> None:
    rows, metadata, said = MISSING[lacks]

    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        for name in said:
            explorer.action_open(name)
            await press(pilot, "down", "up")
            assert said[name] in " ".join(page(explorer).split()), page(explorer)

    walk([write_trace(tmp_path / "t.parquet", rows, metadata)], look)


@pytest.mark.usefixtures("few_analyzers")
def test_a_lane_out_of_sight_is_drawn_when_one_goes_or_resizes_to_it(tmp_path: Path) -> None:
    """Twenty queues where eight fit: the window used to be asked for before it had scrolled."""
    rows = [kernel(1_000 * n, 10, queue=f"stream {n:02}") for n in range(20)]

    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.state.event = EventKey(0, 19)
        explorer.action_open("timeline")
        await press(pilot)
        await settled(pilot)
        assert re.search(r"▸stream 19 work +[A-Z?·]", page(explorer)), page(explorer)
        await pilot.resize_terminal(80, 12)
        await settled(pilot)
        assert re.search(r"▸stream 19 work +[A-Z?·]", page(explorer)), page(explorer)

    walk([write_trace(tmp_path / "t.parquet", rows, {"devices": [H100]})], look)


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


@pytest.mark.usefixtures("few_analyzers")
def test_what_is_not_known_yet_is_not_said_to_be_none(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst line, and what a line ran, while the answer is on its way."""
    answer = threading.Event()

    def late(_: Ask, *_of: object) -> None:
        answer.wait(60)

    monkeypatch.setattr("neuron_explorer.tui.screens.overview._worst", late)
    monkeypatch.setattr("neuron_explorer.tui.source_data.work_of", late)

    async def look() -> None:
        async with explorer.run_test(size=(80, 24)):
            while "compute-bound" not in page(explorer):
                await asyncio.sleep(0.01)
            assert "worst line looking ..." in page(explorer)
            explorer.action_open("source")
            while "model.py:12" not in page(explorer):
                await asyncio.sleep(0.01)
            assert " reading ..." in page(explorer)
            assert "no work" not in page(explorer)
            answer.set()

    explorer = Explorer([str(tiny)])
    try:
        asyncio.run(look())
    finally:
        answer.set()
        explorer.close()
