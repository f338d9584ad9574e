"""Ops of several threads, and sessions that end on another thread than they began on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jobs import run_job  # noqa: E402

from neuron_explorer.collectors.capture.session import profile  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def in_a_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def work() -> None:
    torch.full((2,), 3.0)  # line: full


def rows(session: profile, layer: str) -> list[dict[str, Any]]:
    query = f"SELECT name, source_line, tid FROM events WHERE layer = '{layer}'"
    return session.trace.sql(query).to_pylist()


def issues(session: profile) -> set[str]:
    (metadata,) = session.trace.metadata.values()
    return {issue["kind"] for issue in metadata["import_issues"]}


def test_ops_of_other_threads_are_missing_by_default_and_that_is_said() -> None:
    with profile() as session:
        torch.ones(2)
        in_a_thread(work)
    assert "aten::full" not in {row["name"] for row in rows(session, "framework")}
    assert rows(session, "memory")
    assert "threads_without_ops" in issues(session)


@pytest.mark.parametrize("options", [{"all_threads": True}, {"profile_memory": False}])
def test_ops_of_all_threads(options: dict[str, Any]) -> None:
    with profile(**options) as session:
        torch.ones(2)
        in_a_thread(work)
    found = {row["name"]: row for row in rows(session, "framework")}
    full, ones = found["aten::full"], found["aten::ones"]
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert text[full["source_line"] - 1].endswith("# line: full")
    assert full["tid"] != ones["tid"]
    assert rows(session, "memory") == []
    assert "threads_without_ops" not in issues(session)
    assert ("memory_not_recorded" in issues(session)) == ("all_threads" in options)


@pytest.mark.parametrize("whose", ["ours", "torchs"])
def test_start_and_stop_on_different_threads(whose: str) -> None:
    every = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    theirs = {"experimental_config": every, "source": "off"}
    session = profile(**(theirs if whose == "torchs" else {"all_threads": True}))
    in_a_thread(session.start)
    torch.ones(2)
    in_a_thread(session.stop)
    assert "aten::ones" in {row["name"] for row in rows(session, "framework")}
    assert "memory_not_recorded" in issues(session)


def test_stopping_elsewhere_loses_the_window_and_says_so(tmp_path: Path) -> None:
    job = run_job(
        """
session = profile()
session.start()
torch.ones(2)
t = threading.Thread(target=session.stop); t.start(); t.join()
print(session.paths)
with profile(output="next.parquet") as after:
    torch.ones(2)
print(after.paths)
""",
        tmp_path,
    )
    assert job.code == 0, job.said
    assert job.out.splitlines() == ["[]", "[PosixPath('next.parquet')]"], job.said
    assert "use all_threads=True" in job.said
