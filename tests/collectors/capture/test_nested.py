"""Profilers inside profilers: torch has room for one, and the job goes on whoever gets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jobs import run_job  # noqa: E402

import neuron_explorer  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402
from neuron_explorer.errors import TraceError, UsageError  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]

HERE = "test_nested.py:"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def names(session: profile) -> list[str]:
    rows = session.trace.sql("SELECT name FROM ops ORDER BY start_ns").to_pylist()
    return [row["name"] for row in rows]


def issues(session: profile) -> dict[str, str]:
    (metadata,) = session.trace.metadata.values()
    return {issue["kind"]: issue["example"] for issue in metadata["import_issues"]}


def test_an_inner_session_joins_the_outer_one() -> None:
    with profile(output="outer.parquet") as outer:
        torch.ones(2)
        inner = profile(output="inner.parquet")
        with pytest.warns(UserWarning, match=rf"opened at .*{HERE}\d+ records already.*joins it"):
            inner.start()
        torch.zeros(2)
        inner.step()
        inner.stop()
        with pytest.raises(TraceError) as early:
            inner.trace.close()
        assert "joined the one opened at" in early.value.hint
        torch.full((2,), 3.0)
    assert {"aten::ones", "aten::zeros", "aten::full"} <= set(names(outer))
    assert inner.paths == outer.paths == [Path("outer.parquet")]
    assert names(inner) == names(outer)
    assert not Path("inner.parquet").exists()


def test_an_inner_session_refuses() -> None:
    inner = profile(output="inner.parquet", nested="refuse")
    with (
        profile(output="outer.parquet") as outer,
        pytest.warns(UserWarning, match=rf"{HERE}\d+ records already: this one records nothing"),
        inner,
    ):
        torch.zeros(2)
    assert "aten::zeros" in names(outer)
    assert inner.paths == []


def test_a_session_that_joined_records_by_itself_later() -> None:
    inner = profile(output="inner.parquet")
    with profile(output="outer.parquet"), pytest.warns(UserWarning, match="joins it"), inner:
        torch.zeros(2)
    with inner:
        torch.ones(2)
    assert inner.paths == [Path("inner.parquet")]


def test_a_session_inside_itself_ends_with_the_outermost() -> None:
    session = profile()

    @session
    def factorial(n: int) -> int:
        torch.ones(n)
        return 1 if n < 2 else n * factorial(n - 1)

    with pytest.warns(UserWarning, match=r"ends with the outermost stop\(\)"):
        assert factorial(3) == 6
    assert names(session).count("aten::ones") == 3
    assert session.paths == [Path("trace.parquet")]


def test_nothing_is_recorded_inside_torchs_own() -> None:
    ours = profile()
    with torch.profiler.profile() as theirs:
        torch.ones(2)
        with pytest.warns(UserWarning, match=rf"is open, since .*{HERE}\d+: this window"), ours:
            torch.zeros(2)
        torch.full((2,), 3.0)
    found = {event.name for event in theirs.events()}
    assert {"aten::ones", "aten::zeros", "aten::full"} <= found
    assert ours.paths == []


def test_nothing_is_recorded_while_torchs_own_warms_up() -> None:
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    theirs = torch.profiler.profile(schedule=plan)
    theirs.start()
    with pytest.warns(UserWarning, match="torch's own profiler is open"), profile() as ours:
        torch.zeros(2)
    theirs.step()
    torch.ones(2)
    theirs.step()
    theirs.stop()
    assert ours.paths == []
    assert "aten::ones" in {event.name for event in theirs.events()}


def test_a_window_ends_where_torchs_own_is_opened() -> None:
    with profile() as ours:
        torch.ones(2)
        with (
            pytest.warns(UserWarning, match=rf"is opened at .*{HERE}\d+: this window"),
            torch.profiler.profile() as theirs,
        ):
            torch.zeros(2)
        torch.full((2,), 3.0)
    assert "aten::ones" in names(ours)
    assert not {"aten::zeros", "aten::full"} & set(names(ours))
    assert HERE in issues(ours)["window_cut"]
    assert "aten::zeros" in {event.name for event in theirs.events()}


def test_legacy_profilers_open_inside_ours() -> None:
    with profile() as ours:
        torch.ones(2)
        with (
            pytest.warns(UserWarning, match="is opened at"),
            torch.autograd.profiler.emit_itt(),
        ):
            torch.zeros(2)
    assert "aten::ones" in names(ours)


def test_windows_go_on_after_torchs_own_has_ended() -> None:
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(schedule=plan) as ours:
        with torch.profiler.profile():  # while ours warms up
            torch.zeros(2)
        ours.step()
        torch.ones(2)
        ours.step()
        with torch.profiler.profile():
            torch.zeros(2)
        ours.step()
        torch.full((2,), 3.0)
        ours.step()
    assert len(ours.paths) == 2
    assert "aten::full" in names(ours)
    assert "window_cut" not in issues(ours)


def test_a_session_can_be_used_again_and_stopped_twice() -> None:
    session = profile()
    for _ in range(2):
        session.start()
        torch.ones(2)
        session.stop()
        session.stop()
    session.step()
    assert [path.name for path in session.paths] == ["trace.parquet", "trace.window=001.parquet"]


def test_torchs_own_in_another_thread(tmp_path: Path) -> None:
    job = run_job(
        """
def theirs():
    with torch.profiler.profile() as p:
        torch.ones(3)
    print("theirs", len(p.events()) > 0)

with profile() as ours:
    torch.ones(2)
    t = threading.Thread(target=theirs); t.start(); t.join()
    torch.zeros(2)
print("job done", ours.paths)
""",
        tmp_path,
    )
    assert job.code == 0, job.said
    assert job.out.splitlines()[-1].startswith("job done")
    assert "torch's own profiler is opened at" in job.said


def test_an_unknown_choice_is_said() -> None:
    with pytest.raises(UsageError, match="nested='both' is unknown"):
        profile(nested="both")  # type: ignore[arg-type]


def test_nothing_of_torch_is_watched_before_the_first_session() -> None:
    program = """
import torch.autograd.profiler as p
before = p._prepare_profiler
import neuron_explorer.collectors.capture.session as s
assert p._prepare_profiler is before
s.profile()
assert p._prepare_profiler.__wrapped__ is before
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_handler_has_nothing_to_write_where_the_trace_was_lost() -> None:
    handler: Any = neuron_explorer.trace_handler("runs/")
    with (
        pytest.warns(UserWarning, match="torch holds no events of this window"),
        torch.profiler.profile(on_trace_ready=handler),
        torch.profiler.profile(),
    ):
        torch.ones(2)
    assert list(Path("runs").iterdir()) == []
