"""What the memory, roofline and compile screens ask, on a trace whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from terminal_walks import page, press, walk
from textual.pilot import Pilot

from builders import kernel, op, row, step, write_trace
from neuron_explorer.trace import Trace
from neuron_explorer.tui import memory_data, roofline_data
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.data import Ask

SOURCE = {"source_file": "model.py", "source_line": 7}


def memory(start: int, size: int, live: int | None, address: int, **more: Any) -> Any:
    known = {"device": "cuda:0", "alloc_bytes": size, "device_allocated": live}
    kind = "alloc" if size > 0 else "free"
    return row("memory", kind, start, None, attributes={"Addr": address}, **(known | more))


def rows() -> list[Any]:
    return [
        step(1, 0, 1_000),
        op(0, 50, name="aten::mm", module="a.b", **SOURCE),
        kernel(50, 100, op_id=1, step=1, module="a.b", **SOURCE),
        memory(0, 100, 1_100, 1, op_id=1, **SOURCE),
        memory(100, 50, 1_150, 2),
        memory(200, -100, 1_050, 1),
        memory(500, 300, 1_350, 1, op_id=1, source_file="model.py", source_line=9),
        memory(900, -300, 1_050, 1),
        op(490, 50, name="aten::empty", source_file="model.py", source_line=9),
        row("memory", "alloc", 10, None, device="cpu", alloc_bytes=8),
        row("compiler", "compile", 5, 30, name="forward", graph_id="0/0", **SOURCE),
        row("compiler", "graph_break", 8, None, name="forward", reason="x[/] said no", **SOURCE),
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("charts") / "t.parquet", rows())


@pytest.fixture(scope="module")
def ask(made: Path) -> Iterator[Ask]:
    with Trace.open([made]) as opened:
        yield Ask(opened)


def test_live_bytes_over_time_and_who_holds_the_peak(ask: Ask) -> None:
    cuda, cpu = memory_data.devices(ask)
    assert (cuda["device"], cuda["peak_bytes"], cuda["peak_ns"]) == ("cuda:0", 1_350, 500)
    assert cpu["device"] == "cpu"
    found = memory_data.levels(ask, cuda, 9)
    assert found.columns[found.peak_column] == 1_350
    held = [(h["source_line"], h["bytes"]) for h in found.holders]
    assert held == [(9, 300), (None, 50)], "what was freed before the peak is not alive"


def test_a_column_without_an_event_keeps_the_level(ask: Ask) -> None:
    cuda = memory_data.devices(ask)[0]
    found = memory_data.levels(ask, cuda, 901)
    assert (found.columns[0], found.columns[99], found.columns[100]) == (1_100, 1_100, 1_150)
    assert (found.columns[300], found.columns[499], found.columns[500]) == (1_050, 1_050, 1_350)
    assert found.columns[900] == 1_350, "a column shows the largest within it"


def test_work_without_flops_has_no_point_but_is_counted(ask: Ask) -> None:
    work = roofline_data.work(ask, "kernel", "")
    assert work.points == []
    assert (work.placed_ns, work.whole_ns) == (0, 100)
    assert roofline_data.work(ask, "kernel", "no such name").whole_ns == 0
    roofs = roofline_data.roofs(ask)
    assert roofs is not None
    assert roofs.chip == "h100-sxm"
    assert roofs.peaks["fp16"] > roofs.peaks["fp32"]


def test_points_are_added_up_by_what_the_reader_chose(tiny: Path) -> None:
    with Trace.open([tiny]) as opened:
        asked = Ask(opened)
        by_line = roofline_data.work(asked, "line", "")
        by_kernel = roofline_data.work(asked, "kernel", "")
        one = roofline_data.work(asked, "kernel", "NVJET")
    assert by_line.placed_ns == by_kernel.placed_ns == sum(p["time_ns"] for p in by_line.points)
    assert {point["key"] for point in by_line.points} == {"model.py:12"}
    assert len(by_kernel.points) == 3
    assert [point["key"][:5] for point in one.points] == ["nvjet"]


def test_the_screens_lead_on(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuron_explorer.tui.judging.analyzers", dict)

    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("compile")
        await press(pilot, "down", "up")
        assert "x[/] said no" in page(explorer)
        assert "model.py:7" in page(explorer)
        await press(pilot, "f")
        assert "shown graph breaks" in page(explorer)
        await press(pilot, "enter")
        assert explorer.shown == "source"
        explorer.action_open("memory")
        await press(pilot, "down", "up")
        assert "peak 1.35 kB in use, 500 ns in" in page(explorer)
        await press(pilot, "enter")
        assert explorer.state.spot == ("model.py", 9)
        explorer.action_open("memory")
        await press(pilot, "v")
        assert "more than before the trace" in page(explorer)
        explorer.action_open("modules")
        await press(pilot, "up", "down", "o")
        assert explorer.shown == "ops"
        assert "in a.b" in page(explorer)
        await press(pilot, "escape")
        assert "in a.b" not in page(explorer)

    walk([made], look, size=(100, 30))
