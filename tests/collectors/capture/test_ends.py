"""How a session may end other than by its `stop()`, and what is saved then."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from jobs import files, run_job, run_program  # noqa: E402

import neuron_explorer  # noqa: E402
from neuron_explorer.collectors.capture.outputs import Outputs, remove_leftovers  # noqa: E402

pytestmark = pytest.mark.torch


def names(path: Path) -> set[str]:
    with neuron_explorer.load(path) as trace:
        return {row["name"] for row in trace.sql("SELECT name FROM ops").to_pylist()}


def test_a_session_never_stopped_is_saved_at_exit(tmp_path: Path) -> None:
    job = run_job("session = profile(); session.start(); torch.ones(2)", tmp_path)
    assert job.code == 0
    assert "job.py:5 was not stopped before exit: what it has is saved" in job.said
    assert "aten::ones" in names(tmp_path / "trace.parquet")
    assert files(tmp_path) == ["trace.parquet"]


@pytest.mark.parametrize(
    ("block", "end", "code"),
    [
        ("with profile():", "sys.exit(5)", 5),
        ("with profile():", "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
        (
            "with profile():",
            "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
            -signal.SIGTERM,
        ),
        ("profile().start()\nif 1:", "raise KeyError('theirs')", 1),
        ("profile().start()\nif 1:", "os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
)
def test_what_ends_the_program_saves_what_exists(
    tmp_path: Path, block: str, end: str, code: int
) -> None:
    job = run_job(f"{block}\n    torch.ones(2)\n    {end}\n", tmp_path)
    assert job.code == code, job.said
    assert "aten::ones" in names(tmp_path / "trace.parquet")
    assert files(tmp_path) == ["trace.parquet"]


def test_a_sigterm_handler_of_the_program_stays(tmp_path: Path) -> None:
    job = run_job(
        """
def stop(*_):
    print("theirs", flush=True); sys.exit(9)
signal.signal(signal.SIGTERM, stop)
with profile():
    assert signal.getsignal(signal.SIGTERM) is stop
    torch.ones(2)
    os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)
""",
        tmp_path,
    )
    assert (job.code, job.out) == (9, "theirs\n"), job.said
    assert "aten::ones" in names(tmp_path / "trace.parquet")


def test_sigterm_is_given_back(tmp_path: Path) -> None:
    job = run_job(
        """
with profile(save_at_sigterm=False):
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
with profile():
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(signal.getsignal(signal.SIGTERM) is signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
with profile(output="second.parquet"):
    pass
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
""",
        tmp_path,
    )
    assert job.out.split() == ["True", "False", "True", "True"], job.said


WRITING = """
import neuron_explorer.collectors.capture.window as window
imported = window.import_file
def interrupted(*args, **options):
    {signal}
    print("writes", flush=True)
    imported(*args, **options)
window.import_file = interrupted
with profile():
    torch.ones(2)
print("not reached")
"""


def test_sigterm_while_it_is_written_waits_for_the_file(tmp_path: Path) -> None:
    job = run_job(WRITING.format(signal="os.kill(os.getpid(), signal.SIGTERM)"), tmp_path)
    assert (job.code, job.out) == (-signal.SIGTERM, "writes\n"), job.said
    assert "aten::ones" in names(tmp_path / "trace.parquet")
    assert files(tmp_path) == ["trace.parquet"]


def test_ctrl_c_while_it_is_written_ends_at_once_and_leaves_no_half_file(tmp_path: Path) -> None:
    program = WRITING.replace("{signal}", "").replace(
        "window.import_file = interrupted",
        """
import neuron_explorer.collectors.importers as importers
def half(*_):
    os.kill(os.getpid(), signal.SIGINT); time.sleep(60)
importers.assemble = half
window.import_file = interrupted""",
    )
    begin = time.monotonic()
    job = run_job(program, tmp_path)
    assert (job.code, job.out) == (-signal.SIGINT, "writes\n"), job.said
    assert files(tmp_path) == []
    assert time.monotonic() - begin < 50


def test_a_killed_process_leaves_no_trace_that_is_half(tmp_path: Path) -> None:
    program = WRITING.replace("{signal}", "").replace(
        "window.import_file = interrupted",
        """
import neuron_explorer.collectors.importers as importers
def half(*_):
    os.kill(os.getpid(), signal.SIGKILL)
importers.assemble = half
window.import_file = interrupted""",
    )
    job = run_job(program, tmp_path)
    assert job.code == -signal.SIGKILL
    assert all(name.endswith(".partial") for name in files(tmp_path))


def test_leftovers_of_dead_processes_go(tmp_path: Path) -> None:

    dead, old = 2**22 + 1, time.time() - 7200
    left = tmp_path / f".trace.parquet.{dead}.partial"
    fresh = tmp_path / f".other.parquet.{dead}.partial"
    alive = tmp_path / f".trace.parquet.{os.getpid()}.partial"
    theirs = tmp_path / ".notes.partial"
    for path in (left, fresh, alive, theirs):
        path.write_text("half")
        os.utime(path, (old, old))
    os.utime(fresh)
    Outputs(tmp_path / "trace.parquet").check()
    assert sorted(tmp_path.iterdir()) == sorted([fresh, alive, theirs])
    folder = tmp_path / f"neuron_explorer.{dead}.abc"
    folder.mkdir()
    (folder / "window.json").write_text("{}")
    os.utime(folder, (old, old))
    remove_leftovers(tmp_path, "neuron_explorer.*")
    assert not folder.exists()


def test_a_failing_handler_is_the_users_and_our_file_is_there(tmp_path: Path) -> None:
    job = run_job(
        """
def fail(session):
    raise ValueError("theirs")
with profile(on_trace_ready=fail):
    torch.ones(2)
""",
        tmp_path,
    )
    assert job.code == 1
    assert "ValueError: theirs" in job.said
    assert "aten::ones" in names(tmp_path / "trace.parquet")


@pytest.mark.parametrize(
    ("steps", "own", "said", "code"),
    [
        (0, "0", "step() was called 0 times: nothing was recorded", 3),
        (0, "7", "step() was called 0 times: nothing was recorded", 7),
        (2, "0", "step() was called 2 times, which is less than the schedule asks", 3),
        (4, "0", "", 0),
    ],
)
def test_run_says_what_the_schedule_did_not_get(
    tmp_path: Path, steps: int, own: str, said: str, code: int
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\n"
        "w = torch.nn.Parameter(torch.ones(2)); o = torch.optim.SGD([w], lr=0.1)\n"
        f"for _ in range({steps}):\n    w.sum().backward(); o.step()\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    job = run_program(tmp_path, "-m", "neuron_explorer", "run", "--steps", "2", str(script), own)
    assert job.code == code, job.said
    assert said in job.said
    assert (tmp_path / "trace.parquet").exists() == (steps > 1)


def test_run_saves_at_sigterm(tmp_path: Path) -> None:
    (tmp_path / "hang.py").write_text(
        "import os, signal, time, torch\ntorch.ones(2)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)\n"
    )
    job = run_program(tmp_path, "-m", "neuron_explorer", "run", "hang.py")
    assert job.code == -signal.SIGTERM, job.said
    assert "aten::ones" in names(tmp_path / "trace.parquet")
