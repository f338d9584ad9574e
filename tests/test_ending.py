"""A signal ends a command as Ctrl-C does: one line, its exit code, and nothing half written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from program import TINY

from builders import kernel, op, step, write_trace
from neuron_explorer.cli import main

LINE = "neuron-explorer: interrupted\n"

SIGNALLED_AT_THE_LAST_MOMENT = """
import json, os, pathlib, signal, sys
from neuron_explorer.cli import main
number, commands = json.loads(sys.argv[1])
rename = pathlib.Path.replace
def replace(self, target):
    # what is written is whole, and not yet under its name
    for _ in range(2):
        os.kill(os.getpid(), number)
    return rename(self, target)
pathlib.Path.replace = replace
print(json.dumps([main(command) for command in commands]))
print(signal.getsignal(number) is signal.SIG_DFL)
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ending") / "t.parquet"
    return write_trace(path, [step(1, 0, 90), op(5, 5), kernel(20, 5)])


@pytest.mark.parametrize(
    ("number", "code", "which"),
    [
        (signal.SIGTERM, 143, slice(None)),
        (signal.SIGINT, 130, slice(2)),
        (signal.SIGHUP, 129, slice(2)),
    ],
)
def test_what_a_signal_ends_leaves_nothing_half(
    number: signal.Signals, code: int, which: slice, trace: Path, tmp_path: Path
) -> None:
    """`timeout` sends its signal twice: the second must not end the tidying up."""
    (tmp_path / "out").mkdir()
    (tmp_path / "tmp").mkdir()
    old = tmp_path / "out" / "old.md"
    old.write_text("mine")
    commands = [
        ["export", str(trace), "--to", "perfetto", "-o", "t.json.gz"],
        ["analyze", str(trace), "-o", "old.md"],
        ["import", str(TINY), "-o", "t.parquet"],
        ["diff", str(trace), str(trace), "-o", "d.json"],
        ["tui", str(trace), "--screenshot", "overview", "-o", "o.svg"],
    ][which]
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED_AT_THE_LAST_MOMENT, json.dumps([number, commands])],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path / "out",
        env={"PATH": "/usr/bin", "TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path / "tmp")},
        timeout=120,
    )
    codes, given_back = done.stdout.splitlines()
    assert json.loads(codes) == [code] * len(commands), done.stderr
    assert given_back == str(number is not signal.SIGINT)
    assert done.stderr == LINE * len(commands)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["old.md"]
    assert old.read_text() == "mine"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_ranks_appear_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal between the first and the second file of a folder."""
    texts = [json.loads(TINY.read_text("utf-8")) | {"distributedInfo": {"rank": r}} for r in (0, 1)]
    for text in texts:
        (tmp_path / f"{text['distributedInfo']['rank']}.json").write_text(json.dumps(text), "utf-8")
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target == Path("ranks/rank=1.parquet"):
            signal.raise_signal(signal.SIGINT)
        return rename(self, target)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "replace", replace)
    assert main(["import", "0.json", "1.json", "-o", "ranks"]) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.json", "1.json"]
    monkeypatch.undo()


def test_an_export_that_is_ended_half_way(tmp_path: Path) -> None:
    """From outside, while it writes."""
    spans = [kernel(20 + 2 * i, 1) for i in range(3_000)]
    trace = write_trace(tmp_path / "t.parquet", spans)
    hold = "from neuron_explorer.exports import sink; import time; write = sink.Sink.write;"
    hold += "sink.Sink.write = lambda *_: write(*_) or print(flush=True) or time.sleep(60);"
    code = f"{hold} from neuron_explorer.cli import main; import sys; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, "export", trace, "--to", "csv", "-o", tmp_path / "t.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(list(tmp_path.iterdir())) == 2
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.decode()) == (143, LINE)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
