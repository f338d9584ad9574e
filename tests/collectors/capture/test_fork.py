"""Forks inside a session: the child records and writes nothing, the parent everything."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from jobs import files, run_job  # noqa: E402

import neuron_explorer  # noqa: E402

pytestmark = pytest.mark.torch


def names(path: Path) -> set[str]:
    with neuron_explorer.load(path) as trace:
        return {row["name"] for row in trace.sql("SELECT name FROM ops").to_pylist()}


@pytest.mark.parametrize("end", ["pass", "child()", "atexit._run_exitfuncs()"])
def test_a_forked_child_writes_nothing(tmp_path: Path, end: str) -> None:
    job = run_job(
        f"""
import atexit
pid = os.getpid()
def child():
    torch.zeros(2); session.step(); session.stop()

def ready(session):
    assert os.getpid() == pid
    print("ready", flush=True)

with profile(on_trace_ready=ready) as session:
    torch.ones(2)
    if os.fork() == 0:
        torch.zeros(2)
        {end}
        os._exit(0)
    else:
        assert os.wait()[1] == 0
        torch.full((2,), 3.0)
session.export_chrome_trace("theirs.json")
""",
        tmp_path,
    )
    assert (job.code, job.out) == (0, "ready\n"), job.said
    assert files(tmp_path) == ["theirs.json", "trace.parquet"]
    assert {"aten::ones", "aten::full"} <= names(tmp_path / "trace.parquet")
    assert "aten::zeros" not in names(tmp_path / "trace.parquet")


@pytest.mark.parametrize("when", ["while it records", "later"])
def test_a_forked_child_ends_by_itself(tmp_path: Path, when: str) -> None:
    job = run_job(
        f"""
session = profile()
session.start()
torch.ones(2)
if {when == "later"}:
    session.stop()
time.sleep(0.5)  # until Kineto's thread, which the child has not, waits
child = os.fork()
if child == 0:
    print("child", end="")
    sys.exit(7)
for _ in range(200):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        print(" ended with", os.waitstatus_to_exitcode(status))
        break
    time.sleep(0.1)
else:
    os.kill(child, signal.SIGKILL)
session.stop()
""",
        tmp_path,
    )
    assert (job.code, job.out) == (0, "child ended with 7\n"), job.said
    assert files(tmp_path) == ["trace.parquet"]


def test_a_forked_child_keeps_no_ops(tmp_path: Path) -> None:
    job = run_job(
        """
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
with profile(profile_memory=False, all_threads=False) as session:
    x = torch.ones(2)
    if os.fork() == 0:
        for _ in range(1000): x.add_(1)
        before = resident()
        for _ in range(30_000): x.add_(1)
        print("child", (resident() - before) >> 20, flush=True)
        os._exit(0)
    os.wait()
""",
        tmp_path,
    )
    assert job.code == 0, job.said
    # kept, they would take some 70 MiB
    assert int(job.out.split()[1]) <= 8


def test_a_child_may_record_for_itself(tmp_path: Path) -> None:
    job = run_job(
        """
before = profile(output="shared.parquet")
with profile() as session:
    torch.ones(2)
    if os.fork() == 0:
        with before:
            torch.zeros(2)
        os._exit(0)
    os.wait()
""",
        tmp_path,
    )
    assert job.code == 0, job.said
    (own,) = tmp_path.glob("pid=*.window=000.parquet")
    assert "aten::zeros" in names(own)
    assert "aten::ones" in names(tmp_path / "trace.parquet")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_a_pool(tmp_path: Path, method: str) -> None:
    job = run_job(
        f"""
import multiprocessing
def double(x):
    return (torch.full((1,), float(x)) * 2).item()

if __name__ == "__main__":
    with profile() as session:
        torch.ones(2)
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            print(pool.map(double, range(3)))
        torch.zeros(2)
""",
        tmp_path,
        anew=method != "fork",  # the others begin with the main program's file
    )
    assert (job.code, job.out) == (0, "[0.0, 2.0, 4.0]\n"), job.said
    assert files(tmp_path) == ["trace.parquet"]
    assert {"aten::ones", "aten::zeros"} <= names(tmp_path / "trace.parquet")


def test_workers_of_a_data_loader(tmp_path: Path) -> None:
    job = run_job(
        """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(8.0))
plan = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
with profile(schedule=plan) as session:
    seen = []
    for (batch,) in DataLoader(data, batch_size=2, num_workers=2):
        seen += batch.mul(2).tolist()
        session.step()
print(seen)
""",
        tmp_path,
    )
    assert (job.code, job.out) == (0, f"{[2.0 * n for n in range(8)]}\n"), job.said
    assert files(tmp_path) == ["trace.parquet"]
    assert "aten::mul" in names(tmp_path / "trace.parquet")


def test_a_handler_writes_nothing_in_a_forked_child(tmp_path: Path) -> None:
    job = run_job(
        """
import neuron_explorer
handler = neuron_explorer.trace_handler("runs/")
with torch.profiler.profile(on_trace_ready=handler) as session:
    torch.ones(2)
    child = os.fork()
    if child:
        os.wait()
if not child:
    os._exit(0)
""",
        tmp_path,
    )
    assert job.code == 0, job.said
    assert files(tmp_path) == ["runs/window=000.parquet"]
    assert "aten::ones" in names(tmp_path / "runs/window=000.parquet")
