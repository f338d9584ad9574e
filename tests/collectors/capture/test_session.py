"""`profile()` on real torch: what it writes, where, and that it never harms the job."""

from __future__ import annotations

import gc
import gzip
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import neuron_explorer  # noqa: E402
from neuron_explorer.collectors.capture.script import Run, run  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402
from neuron_explorer.errors import OutputError, TraceError, UsageError  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # torch warns of its own defaults; they are not what is tested here
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        h = self.layer(x)  # line: linear
        return torch.relu(h)  # line: relu


def line_of(mark: str) -> int:
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(text, 1) if line.endswith(f"# line: {mark}"))


def ops(session: profile) -> dict[str, dict[str, Any]]:
    rows = session.trace.sql(
        "SELECT * FROM events WHERE layer = 'framework' ORDER BY start_ns"
    ).to_pylist()
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["name"], row)
    return found


@pytest.mark.parametrize(("source", "via"), [("auto", "line"), ("call", "call")])
def test_the_plain_use_writes_one_trace_with_its_lines(source: Any, via: str) -> None:
    model, x = Model(), torch.randn(4, 8)
    with profile(source=source) as session:
        loss = model(x).sum()
        loss.backward()
    assert session.paths == [Path("trace.parquet")]
    found = ops(session)
    for name, mark in (("aten::addmm", "linear"), ("aten::relu", "relu")):
        row = found[name]
        assert row["source_file"].endswith("test_session.py")
        assert (row["source_line"], row["source_via"]) == (line_of(mark), via)
        assert row["source_function"] == "forward"
    backward = found["AddmmBackward0"]
    assert (backward["source_line"], backward["source_via"]) == (line_of("linear"), "forward")
    assert found["aten::addmm"]["input_shapes"] is not None
    assert found["aten::addmm"]["flops"] == 2 * 4 * 8 * 8


def test_the_trace_brings_its_source_lines() -> None:
    model, x = Model(), torch.randn(4, 8)
    with profile() as session:
        model(x)
    (metadata,) = session.trace.metadata.values()
    (excerpt,) = [e for f, e in metadata["sources"].items() if f.endswith("test_session.py")]
    assert excerpt["lines"][str(line_of("relu"))].strip().startswith("return torch.relu(h)")
    assert metadata["origin"]["via"] == "capture"


def test_names_are_kept_exactly() -> None:
    names = [
        "ünï",
        "日本",
        "🔥 step",
        'a"b',
        "back\\slash",
        "two\nlines",
        "tab\t",
        "\x1b[1m",
        "plain",
    ]
    with profile() as session:
        for name in names:
            with torch.profiler.record_function(name):
                torch.ones(2)
    assert set(names) <= set(ops(session))


def test_windows_never_share_a_file() -> None:
    plan = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=3)
    with profile(output="runs/trace.parquet", schedule=plan) as session:
        for _ in range(9):
            torch.ones(2).add(1)
            session.step()
    names = ["trace.parquet", "trace.window=001.parquet", "trace.window=002.parquet"]
    assert [path.name for path in session.paths] == names
    steps = [
        {row["step"] for row in session.trace.open([path]).sql("FROM steps").to_pylist()}
        for path in session.paths
    ]
    assert steps == [{2}, {5}, {8}]


def test_a_folder_holds_one_file_a_window() -> None:
    with profile(output="runs") as session:
        torch.ones(2)
    assert session.paths == [Path("runs/window=000.parquet")]


def test_a_later_session_leaves_the_windows_of_the_folder_as_they_are() -> None:
    for number in range(3):
        with profile(output="runs", source="off") as session:
            torch.ones(number + 1)
        assert session.paths == [Path(f"runs/window={number:03d}.parquet")]
    assert len(list(Path("runs").iterdir())) == 3


def test_ranks_never_share_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "2")
    with profile(output="trace.parquet") as session:
        torch.ones(2)
    assert session.paths == [Path("trace/rank=2.parquet")]


def test_the_handler_of_the_user_still_runs_and_may_export() -> None:
    seen: list[int] = []

    def handler(session: profile) -> None:
        session.export_chrome_trace("theirs.json")
        session.export_chrome_trace("theirs.json.gz")
        seen.append(session.step_num)

    with profile(on_trace_ready=handler):
        torch.ones(2)
    assert seen == [0]
    plain = json.loads(Path("theirs.json").read_text())
    assert plain == json.loads(gzip.decompress(Path("theirs.json.gz").read_bytes()))
    assert any(event.get("name") == "aten::ones" for event in plain["traceEvents"])


def test_an_unwritable_output_is_found_before_the_run() -> None:
    Path("file").write_text("")
    session = profile(output="file/trace.parquet")
    with pytest.raises(OutputError, match="cannot write to file"):
        session.start()


def test_a_full_disk_does_not_stop_the_job() -> None:
    code = """
import resource, sys, torch
from neuron_explorer.collectors.capture.session import profile
with profile() as session:
    torch.ones(2).add(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
print("job done", session.paths)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("job done []")
    assert "the profile was not written" in done.stderr
    assert done.returncode == 0


def test_the_users_exception_wins_and_the_trace_is_written() -> None:
    def fail() -> None:
        with profile():
            torch.ones(2)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert Path("trace.parquet").exists()


def test_no_step_is_said() -> None:
    plan = torch.profiler.schedule(wait=1, warmup=1, active=1)
    with pytest.warns(UserWarning, match="step\\(\\) was called 0 times"), profile(schedule=plan):
        torch.ones(2)


def test_no_window_yet_is_said() -> None:
    with pytest.raises(TraceError, match="no window has been written"):
        profile().trace.close()


def test_it_decorates() -> None:
    @profile(output="decorated.parquet")
    def work() -> int:
        torch.ones(2)
        return 3

    assert work() == 3
    assert Path("decorated.parquet").exists()


def test_many_sessions_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(3):
            with profile(output=f"{number}.parquet"):
                torch.ones(2)
    assert sorted(p.name for p in Path().glob("*.parquet")) == [f"{n}.parquet" for n in range(3)]
    gc.collect()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("theirs", [KeyError("theirs"), SystemExit(5)])
def test_what_ends_the_block_wins_over_a_handler_that_fails(theirs: BaseException) -> None:
    def fail(_session: Any) -> None:
        raise ValueError("of the handler")

    @profile(on_trace_ready=fail)
    def job() -> None:
        torch.ones(2)
        raise theirs

    with pytest.raises(type(theirs)) as ended:
        job()
    assert ended.value is theirs
    assert ended.value.__notes__ == ["and when its profile ended: ValueError('of the handler')"]
    assert Path("trace.parquet").exists()


def test_a_handler_for_torchs_own_profiler() -> None:
    handler = neuron_explorer.trace_handler("runs/")
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with torch.profiler.profile(schedule=plan, on_trace_ready=handler) as session:
        for _ in range(4):
            torch.ones(2).add(1)
            session.step()
    assert sorted(p.name for p in Path("runs").iterdir()) == [
        "window=000.parquet",
        "window=001.parquet",
    ]


SCRIPT = """
import sys
import torch
import helper
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(__name__, sys.argv[1:], helper.NAME)
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "helper.py").write_text("NAME = 'helper'")
    (folder / "train.py").write_text(SCRIPT)
    return folder / "train.py"


def test_a_script_runs_unchanged(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, paths = run(Run(str(script), ("2", "7"), output=Path("all.parquet")))
    assert (code, paths) == (7, [Path("all.parquet")])
    assert capsys.readouterr().out == "__main__ ['2', '7'] helper\n"
    with neuron_explorer.load("all.parquet") as trace:
        names = set(trace.sql("SELECT name FROM ops").column("name").to_pylist())
    assert "aten::addmm" in names


FACTS = """
import sys, torch, neuron_explorer
mark = 1
print(__file__, sys.argv, __package__, __spec__, type(__loader__).__name__, sys.path[0])
print(sys.modules["__main__"].mark)
with neuron_explorer.profile():
    torch.ones(2)
sys.excepthook = lambda kind, error, trace: print(error, trace.tb_frame.f_code.co_filename)
raise ValueError("theirs")
"""


def test_a_script_finds_what_python_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "project" / "facts.py"
    script.parent.mkdir()
    script.write_text(FACTS)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    with pytest.warns(UserWarning, match="opened at `neuron-explorer run` records already"):
        assert run(Run("project/facts.py", ("a",)))[0] == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{script} ['project/facts.py', 'a'] None None SourceFileLoader {script.parent}",
        "1",
        f"theirs {script}",
    ]


def test_chosen_steps_of_a_script(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = run(Run(str(script), ("6", "0"), output=Path("some.parquet"), steps=2, wait=1))
    assert code == 0
    capsys.readouterr()
    with neuron_explorer.load("some.parquet") as trace:
        assert trace.sql("SELECT step FROM steps ORDER BY step").to_pylist() == [
            {"step": 2},
            {"step": 3},
        ]


def test_a_module_runs_by_name(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(script.parent)
    assert run(Run("train", ("1", "0"), module=True)) == (0, [Path("trace.parquet")])
    assert capsys.readouterr().out == "__main__ ['1', '0'] helper\n"
    assert Path("trace.parquet").exists()


def test_a_failing_script_keeps_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_text("import torch\ntorch.ones(2)\nraise ValueError('theirs')\n")
    assert run(Run("bad.py"))[0] == 1
    assert "ValueError: theirs" in capsys.readouterr().err
    assert Path("trace.parquet").exists()


def test_no_script_is_said_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="no script"):
        run(Run("missing.py"))
    assert not Path("trace.parquet").exists()


def test_annotations_do_not_hide_the_calling_line() -> None:
    x = torch.randn(4)
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with profile(source="call", schedule=plan) as session:
        for _ in range(2):
            x.sum().item()  # line: item
            session.step()
    found = ops(session)["aten::item"]
    assert (found["source_line"], found["source_via"]) == (line_of("item"), "call")


def test_a_debuggers_trace_function_is_left_alone() -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("line events do not compete with a trace function")
    code = """
import sys
from neuron_explorer.collectors.capture.session import resolve_source
before = resolve_source("auto")
sys.settrace(lambda *_: None)
print(before, resolve_source("auto"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "exact call\n"


def test_exported_windows_do_not_pile_up() -> None:
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=3)
    with profile(schedule=plan) as session:
        for _ in range(6):
            torch.ones(2)
            session.step()
    assert len(session.paths) == 3
    (exported,) = Path(session._files.current.parent).iterdir()
    assert exported == session._files.current


@pytest.mark.parametrize("own", [True, False])
def test_a_fault_of_ours_does_not_end_the_job(
    monkeypatch: pytest.MonkeyPatch, *, own: bool
) -> None:
    def fault(*_: object, **__: object) -> None:
        raise IndexError("ours")

    monkeypatch.setattr("neuron_explorer.collectors.capture.window.import_file", fault)
    handler = neuron_explorer.trace_handler("trace.parquet")
    session = profile() if own else torch.profiler.profile(on_trace_ready=handler)
    with pytest.warns(UserWarning, match="the profile was not written: ours"), session:
        torch.ones(2)
    assert not Path("trace.parquet").exists()


def test_a_session_that_did_not_begin_stands_in_nobodys_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fault(*_: object) -> None:
        raise OSError("no recorder here")

    with monkeypatch.context() as patched:
        patched.setattr(torch.profiler.profile, "start", fault)
        with pytest.raises(UserWarning, match="nothing is recorded: no recorder here"):
            profile().start()  # warnings are errors here
    with profile() as session:
        torch.ones(2).exp()
    assert session.paths == [Path("trace.parquet")]
