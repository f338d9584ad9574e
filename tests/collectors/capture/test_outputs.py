"""Where windows are written: nobody finds another session's under the name of his own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.collectors.capture.outputs import Outputs, Written  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402
from neuron_explorer.errors import OutputError, TraceError  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_trace_that_another_session_replaced_is_not_taken_for_ones_own() -> None:
    with profile(source="off") as before:
        torch.ones(2).sin()
    assert before.trace.sql("SELECT * FROM ops WHERE name = 'aten::sin'").num_rows == 1
    with profile(source="off") as after:
        torch.ones(2).cos()
    assert after.trace.sql("SELECT * FROM ops WHERE name = 'aten::cos'").num_rows == 1
    with pytest.raises(TraceError, match=r"trace\.parquet has been replaced") as failure:
        before.trace.close()
    assert "output=" in failure.value.hint


def test_a_file_that_is_gone_has_not_been_replaced() -> None:
    place = Path("trace.parquet")
    place.write_bytes(b"ours")
    written = Written.now(place)
    assert not written.replaced()
    place.unlink()
    assert not written.replaced()
    place.write_bytes(b"theirs")
    os.utime(place, ns=(0, 0))
    assert written.replaced()


def test_a_tilde_is_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    outputs = Outputs(Path("~/runs/trace.parquet"))
    outputs.check()
    assert outputs.next() == tmp_path / "home" / "runs" / "trace.parquet"
    assert not Path("~").exists()


@pytest.mark.parametrize("name", ["x" * 300, "x" * 230, "null\0byte"])
def test_a_name_that_no_file_can_have_is_found_before_the_run(name: str) -> None:
    with pytest.raises(OutputError, match="cannot write to"):
        profile(output=f"{name}.parquet").start()
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("rank", "windows", "lying", "found"),
    [
        (None, 2, ["t", "t.window=001", "t.window=002", "tt.window=009", "u"], ["t.window=002"]),
        (None, 2, ["t", "t.window=001"], []),
        (
            0,
            1,
            ["rank=0", "rank=1", "rank=2", "rank=3.window=001"],
            ["rank=2", "rank=3.window=001"],
        ),
        (1, 1, ["rank=0.window=005", "rank=1.window=001", "rank=9"], ["rank=1.window=001"]),
    ],
)
def test_what_an_earlier_run_had_more_of_is_known(
    rank: int | None,
    windows: int,
    lying: list[str],
    found: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if rank is not None:
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("RANK", str(rank))
    outputs = Outputs(Path("t.parquet"), rank)
    outputs.folder.mkdir(exist_ok=True)
    for name in lying:
        (outputs.folder / f"{name}.parquet").touch()
    for _ in range(windows):
        outputs.next()
    assert [path.stem for path in outputs.of_earlier_runs()] == found


def test_what_an_earlier_run_had_more_of_is_said() -> None:
    Path("trace.window=001.parquet").touch()
    with (
        pytest.warns(UserWarning, match=r"trace\.window=001\.parquet: of an earlier run"),
        profile(source="off"),
    ):
        torch.ones(2)
    assert Path("trace.window=001.parquet").exists()


def test_a_folder_keeps_what_lies_there_and_says_nothing() -> None:
    Path("runs").mkdir()
    Path("runs/window=000.parquet").touch()
    outputs = Outputs(Path("runs"))
    assert outputs.next().name == "window=001.parquet"
    assert outputs.of_earlier_runs() == []


def test_a_handler_that_fails_costs_no_window() -> None:
    def fail(_session: Any) -> None:
        raise ValueError("of the handler")

    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    session: Any = profile(output="runs", schedule=plan, on_trace_ready=fail, source="off")
    session.start()
    failed = []
    for step in range(4):
        torch.ones(2).sin()
        try:
            session.step()
        except ValueError:
            failed.append(step)
    session.stop()
    assert failed == [1, 3]
    assert len(session.paths) == 2
    steps = session.trace.sql("SELECT step FROM steps").to_pylist()
    assert steps == [{"step": 3}]
