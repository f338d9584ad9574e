"""The Compare screen with a second trace; without one it is in test_pictures.py."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn_cells import cells_of
from golden_pictures import check_picture
from step_traces import Call, Times, made
from textual.pilot import Pilot

from neuron_explorer.analyzers import Report
from neuron_explorer.cli import main
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.grid import Grid
from neuron_explorer.tui.picture import settled
from neuron_explorer.tui.screens.compare import CompareScreen
from neuron_explorer.tui.state import Spot

NAMES = ("mm", "add", "tanh", "sum", "div", "exp")
CALLS = [Call(line, name) for line, name in enumerate(NAMES, 10)]
TEXTS = {call.line: f"x = x.{call.name}()" for call in CALLS} | {11: "x = x + '[red]\x1b[31m'"}
FOREVER = (
    "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b"
    " WHERE (a.range + b.range) % 7 < a.range % 5"
)
FRESH = Finding(
    "a-1", "a", "warning", "Much too much", "It is too much.", "Do less.", 0, CALLS[0].file, 12
)
SIZES = ((80, 24), (140, 45))


def steps(factor: float = 1.0, calls: list[Call] | None = None) -> list[Times]:
    """Ten steps of six ops; the op of line 12 takes `factor` times as long."""
    return [
        {c: round((500 + n % 3) * (factor if c.line == 12 else 1)) for c in calls or CALLS}
        for n in range(10)
    ]


@pytest.fixture(scope="module")
def traces_of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    made(folder / "base.parquet", steps(), TEXTS)
    more = [*CALLS, Call(20, "gelu")]
    made(folder / "new.parquet", steps(2.0, more), TEXTS | {20: "x = gelu(x)"})
    return folder


@pytest.fixture(scope="module", autouse=True)
def _few_analyzers(traces_of_two: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(traces_of_two)
        patch.setattr("neuron_explorer.tui.judging.analyzers", dict)
        patch.setattr("neuron_explorer.tui.screens.compare.run", found)
        yield


def found(trace: Trace) -> Report:
    fresh = [FRESH] if trace.files[0].name == "new.parquet" else []
    return Report(fresh, [], [], {})


async def opened(pilot: Pilot[int]) -> tuple[Explorer, CompareScreen]:
    await settled(pilot)
    explorer = pilot.app
    assert isinstance(explorer, Explorer)
    explorer.action_open("compare")
    await settled(pilot)
    assert isinstance(explorer.screen, CompareScreen)
    return explorer, explorer.screen


def app() -> Explorer:
    return Explorer(["base.parquet"], others=["new.parquet"])


@pytest.fixture(scope="module")
def pictures() -> dict[str, str]:
    async def draw() -> dict[str, str]:
        drawn = {}
        async with app().run_test(size=SIZES[0]) as pilot:
            explorer, _ = await opened(pilot)
            for width, height in SIZES:
                await pilot.resize_terminal(width, height)
                await settled(pilot)
                drawn[f"compared-{width}x{height}"] = explorer.export_screenshot()
        explorer.close()
        return drawn

    return asyncio.run(draw())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_screen_looks_as_it_did(
    pictures: dict[str, str], size: tuple[int, int], request: pytest.FixtureRequest
) -> None:
    picture = f"compared-{size[0]}x{size[1]}"
    text = cells_of(pictures[picture])
    assert "worse" in text
    assert "x = gelu(x)" in text
    check_picture(picture, pictures[picture], request)


def test_walk_through_kinds_to_the_line_and_back() -> None:
    async def walk() -> None:
        async with app().run_test(size=(120, 40)) as pilot:
            explorer, screen = await opened(pilot)
            grid = screen.query_one(Grid)
            assert [grid.at(n).verdict for n in range(2)] == ["new", "worse"]
            assert grid.total == 8  # seven lines, and what has none
            await pilot.press("enter")
            assert explorer.said == "this trace has no line for that"

            await pilot.press("c")
            assert grid.total == 2
            await pilot.press("c", "j", "enter")
            await settled(pilot)
            assert explorer.shown == "source"
            assert explorer.state.spot == Spot(CALLS[0].file, 12)

            await pilot.press("escape")
            await settled(pilot)
            assert explorer.shown == "compare"
            await pilot.press("f")
            assert screen.kind == "findings"
            assert [grid.row.verdict, grid.row.said] == ["new", "Much too much"]
            for kind in ("modules", "ops", "queues", "figures", "lines"):
                await pilot.press("f")
                assert screen.kind == kind
        explorer.close()

    asyncio.run(walk())


def test_a_second_trace_that_is_none_is_said_on_the_screen() -> None:
    async def walk() -> None:
        explorer = Explorer(["base.parquet"], others=["no-such.parquet"])
        async with explorer.run_test(size=(120, 40)) as pilot:
            await opened(pilot)
            assert explorer.said.startswith("no trace at no-such.parquet")
        explorer.close()

    asyncio.run(walk())


@pytest.mark.parametrize("busy", ["base.parquet", "new.parquet"])
def test_leaving_does_not_wait_for_the_comparison(
    busy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = threading.Event()

    def judge(trace: Trace) -> Report:
        if trace.files[0].name == busy:
            trace.sql(FOREVER, started=lambda _: running.set())
        return Report([], [], [], {})

    monkeypatch.setattr("neuron_explorer.tui.screens.compare.run", judge)
    monkeypatch.setattr("neuron_explorer.tui.judging.Judging.judge", lambda _: None)

    async def leave() -> Explorer:
        explorer = app()
        async with explorer.run_test() as pilot:
            await settled_at_first(pilot)
            explorer.action_open("compare")
            await asyncio.to_thread(running.wait, 60)
        return explorer

    explorer = asyncio.run(leave())
    began = time.monotonic()
    explorer.close()
    assert running.is_set()
    assert time.monotonic() - began < 10, "less than the last moment that a thread is given"
    assert explorer.questions.over()


async def settled_at_first(pilot: Pilot[int]) -> None:
    explorer = pilot.app
    assert isinstance(explorer, Explorer)
    while not explorer.opened or explorer.pending:
        await asyncio.sleep(0.01)


def test_the_screen_has_a_place_only_where_there_are_two() -> None:
    assert "compare" in [kind.NAME for kind in app().kinds]
    assert "compare" not in [kind.NAME for kind in Explorer(["base.parquet"]).kinds]


def test_its_picture_needs_a_second_trace(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = ["tui", "base.parquet", "--screenshot", "compare", "-o", "x.svg"]
    assert main(drawn) == 2
    assert "name the other trace with --compare" in capsys.readouterr().err
    assert main([*drawn, "--compare", "new.parquet"]) == 0
    assert Path("x.svg").read_text("utf-8").startswith("<svg")
