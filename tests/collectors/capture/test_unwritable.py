"""Outputs that cannot be written: found before the run, or said after it; the job goes on."""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from jobs import files, run_job  # noqa: E402

from neuron_explorer.collectors.capture.growth import Growth, available_bytes  # noqa: E402
from neuron_explorer.collectors.capture.recording import Phase  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402
from neuron_explorer.collectors.memory import give_back  # noqa: E402
from neuron_explorer.errors import OutputError  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_folder_where_the_file_should_be() -> None:
    Path("trace.parquet").mkdir()
    with pytest.raises(OutputError, match=r"cannot write to trace\.parquet: it is a folder"):
        profile().start()


def test_a_place_that_takes_no_files() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("no /proc here")
    with pytest.raises(OutputError, match="cannot write to /proc/self"):
        profile(output="/proc/self/trace.parquet").start()


def test_a_folder_without_leave() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    Path("closed").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="cannot write to closed"):
        profile(output="closed/trace.parquet").start()


def test_a_missing_folder_is_made() -> None:
    with profile(output="a/b/trace.parquet") as session:
        torch.ones(2)
    assert session.paths[0].exists()


def test_a_folder_that_goes_while_it_is_recorded() -> None:
    with profile(output="gone/trace.parquet") as session:
        torch.ones(2)
        Path("gone").rmdir()
    assert session.paths == [Path("gone/trace.parquet")]
    assert session.paths[0].exists()


@pytest.mark.parametrize("limit", [0, 2000, 6000])
def test_a_disk_that_fills_up_leaves_nothing_half(tmp_path: Path, limit: int) -> None:
    job = run_job(
        f"""
import resource, pathlib, tempfile
os.mkdir("temporary")
tempfile.tempdir = os.path.abspath("temporary")
with profile(output="runs") as session:
    torch.ones(2).add(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
print("job done", session.paths)
""",
        tmp_path,
        anew=True,  # its output goes to a pipe, which the limit spares
    )
    assert (job.code, job.out) == (0, "job done []\n"), job.said
    assert "the profile was not written" in job.said
    assert files(tmp_path) == []


def fresh_memory(size: int) -> mmap.mmap:
    """Pages that the process did not have: malloc may give what an earlier test has freed."""
    pages = mmap.mmap(-1, size)
    pages.write(bytes(size))
    return pages


def steps(session: profile) -> None:
    """Five steps; the process grows in the third."""
    kept = []
    with session:
        for step in range(5):
            torch.full((2,), float(step))
            if step == 2:
                kept.append(fresh_memory(128 << 20))
            session.step()


def test_a_recording_that_grows_too_large_ends_early() -> None:
    plan = torch.profiler.schedule(wait=0, warmup=1, active=4, repeat=1)
    session = profile(max_growth=64 << 20, schedule=plan, output="steps.parquet")
    with pytest.warns(UserWarning, match="recording ends here: the process has grown by"):
        steps(session)
    (metadata,) = session.trace.metadata.values()
    assert [issue["kind"] for issue in metadata["import_issues"]] == ["budget_reached"]
    assert not session.complete
    rows = session.trace.sql("SELECT name FROM ops WHERE name = 'aten::full'").to_pylist()
    assert len(rows) == 2


def many_ops(session: profile) -> None:
    x = torch.ones(2)
    with session:
        for _ in range(100_000):
            x.add_(1)


def test_growth_is_looked_at_where_no_step_is_called() -> None:
    give_back()
    session = profile(max_growth=60 << 20)
    with pytest.warns(UserWarning, match="recording ends here"):
        many_ops(session)
    query = "SELECT count(*) AS n FROM ops WHERE name = 'aten::add_'"
    assert 10_000 < session.trace.sql(query)["n"][0].as_py() < 100_000


@pytest.mark.parametrize("memory", [True, False], ids=["own thread", "all threads"])
def test_growth_is_looked_at_where_nothing_of_ours_is_called(*, memory: bool) -> None:
    session = profile(source="off", max_growth=20 << 20, profile_memory=memory)
    with pytest.warns(UserWarning, match="recording ends here"):
        grow_until_it_ends(session)
    assert not session.complete
    (metadata,) = session.trace.metadata.values()
    kinds = [issue["kind"] for issue in metadata["import_issues"]]
    assert "budget_reached" in kinds
    assert threads_that_watch() == 0


def grow_until_it_ends(session: profile) -> None:
    x = torch.ones(2)
    with session:
        kept = fresh_memory(64 << 20)
        deadline = time.monotonic() + 60
        while session._phase is Phase.RECORDING and time.monotonic() < deadline:
            x.add_(1)
        assert len(kept) > 0
        assert session._phase is Phase.ENDED


def threads_that_watch() -> int:
    deadline = time.monotonic() + 10
    while (alive := _watching()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return alive


def _watching() -> int:
    return sum(thread.name == "neuron_explorer growth" for thread in threading.enumerate())


def test_growth_is_measured() -> None:
    growth = Growth(10 << 20)
    growth.start()
    assert growth.over() is None
    held = fresh_memory(32 << 20)
    assert (growth.over() or 0) > 10 << 20
    assert len(held) > 0
    assert (available_bytes() or 0) > 1 << 20
