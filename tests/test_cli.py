"""Help, wrong usage, wrong input, `import`, an interrupt: the command line seen from outside."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
import typer.main
from program import PROGRAM, TINY, hostile_trace, program
from pyarrow import parquet

from builders import op, write_trace
from neuron_explorer import __version__
from neuron_explorer.cli import app, main

README = Path(__file__).parents[1] / "README.md"
COMMANDS = sorted(typer.main.get_group(app).commands)

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_trace(tmp_path_factory.mktemp("made") / "made.parquet")


# ---- help and version ------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == 0
    assert f"  neuron-explorer {command}" in capsys.readouterr().out


def test_no_arguments_show_the_help(capsys: Capture) -> None:
    assert main([]) == 0
    page = capsys.readouterr().out
    assert all(f"\n  {command} " in page for command in COMMANDS)
    described = page.partition("Commands:")[2]
    assert "..." not in described  # nothing is cut


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"neuron-explorer {__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from neuron_explorer.cli import main; main(['analyze', '--help']);"
        "heavy = {'duckdb', 'pyarrow', 'polars', 'numpy', 'torch', 'textual', 'rich'};"
        "print('loaded', *(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.endswith(b"\nloaded\n")


# ---- wrong usage -----------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["analyze"], "Missing argument 'FILE'"),
        (["analyze", "x", "--limit", "many"], "--limit"),
        (["analyze", "x", "--json", "--format", "md"], "exclude each other"),
        (["analyze", "x", "--param", "threshold"], "names no value"),
        (["analyze", "x", "--param", "device_idle.stall_ns=soon"], "takes a number, not 'soon'"),
        (["analyze", "x", "--only", ","], "names no analyzer"),
        (["sql", "x", "SELECT 1", "--json", "--format", "csv"], "exclude each other"),
        (["schema", "no_such_view"], "there is no table 'no_such_view'"),
        (["import", "no*match.json"], "no file matches"),
    ],
)
def test_wrong_usage_is_one_line_a_hint_and_code_2(
    arguments: list[str], said: str, capsys: Capture
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    first, *rest = told.err.splitlines()
    assert first.startswith("neuron-explorer: ")
    assert said in first
    assert len(rest) == 1
    assert rest[0].startswith("hint: ")
    assert told.out == ""


def wrong_inputs(folder: Path) -> dict[str, Path]:
    """A path for each way an input can be wrong."""
    paths = {name: folder / name for name in ("missing.json", "empty.json", "picture.json")}
    (folder / "empty.json").touch()
    (folder / "picture.json").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    paths["folder"] = folder / "no traces"
    paths["folder"].mkdir()
    paths["missing.parquet"] = folder / "missing.parquet"
    paths["cut.parquet"] = folder / "cut.parquet"
    whole = write_trace(folder / "whole.parquet", [op(0, 1)]).read_bytes()
    paths["cut.parquet"].write_bytes(whole[: len(whole) // 2])
    paths["rotten.parquet"] = folder / "rotten.parquet"
    paths["rotten.parquet"].write_bytes(
        whole[:4] + bytes(len(whole) // 4) + whole[len(whole) // 4 + 4 :]
    )
    paths["foreign.parquet"] = folder / "foreign.parquet"
    parquet.write_table(pa.table({"a": [1]}), paths["foreign.parquet"])
    return paths


@pytest.mark.parametrize(
    "kind",
    [
        "missing.json",
        "empty.json",
        "picture.json",
        "folder",
        "missing.parquet",
        "cut.parquet",
        "rotten.parquet",
        "foreign.parquet",
    ],
)
@pytest.mark.parametrize("command", ["info", "analyze", "sql"])
def test_a_wrong_input_is_one_line_that_names_it(
    command: str, kind: str, tmp_path: Path, capsys: Capture
) -> None:
    path = wrong_inputs(tmp_path)[kind]
    query = ["SELECT count(name) FROM work"] if command == "sql" else []
    assert main([command, str(path), *query]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("neuron-explorer: ")
    assert path.name in told.err
    assert "Traceback" not in told.err
    assert len(told.err.splitlines()) <= 2


def test_an_unknown_chip_and_an_unknown_analyzer(made: Path, capsys: Capture) -> None:
    assert main(["analyze", str(made), "--device", "h10"]) == 1
    assert "hint: did you mean h100" in capsys.readouterr().err
    assert main(["analyze", str(made), "--only", "nonsense"]) == 1
    assert "there is no analyzer 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json", "md"])
def test_a_report_never_overwrites_the_trace(form: str, made: Path, capsys: Capture) -> None:
    before = made.read_bytes()
    assert main(["analyze", str(made), "--format", form, "-o", str(made)]) == 2
    assert "is an input and would be overwritten" in capsys.readouterr().err
    assert made.read_bytes() == before


# ---- import ----------------------------------------------------------------


def test_import_one_file(tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "trace.parquet"
    assert main(["import", str(TINY), "-o", str(output)]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert f"next: neuron-explorer analyze {output}" in told.err
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]


def test_import_quietly_and_as_json(tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "trace.parquet"
    assert main(["import", str(TINY), "-o", str(output), "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["import", str(TINY), "-o", str(output), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "neuron_explorer.import/1"
    assert told["imported"][0]["events"] > 0
    assert told["exit_code"] == 0


def test_import_several_files_to_a_folder_of_ranks(tmp_path: Path, capsys: Capture) -> None:
    for rank in (3, 1):
        text = TINY.read_text("utf-8").replace('"rank": 0', f'"rank": {rank}')
        (tmp_path / f"r{rank}.json").write_text(text, "utf-8")
    folder = tmp_path / "traces"
    assert main(["import", str(tmp_path / "r*.json"), "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["rank=1.parquet", "rank=3.parquet"]
    capsys.readouterr()
    assert main(["sql", str(folder), "SELECT DISTINCT rank FROM events ORDER BY 1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[1], [3]]
    assert main(["import", str(tmp_path / "r*.json"), "-o", str(folder)]) == 2
    assert "holds traces already" in capsys.readouterr().err


def test_two_files_of_one_rank_leave_nothing(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "traces"
    assert main(["import", str(TINY), str(TINY), "-o", str(folder)]) == 2
    assert "says rank=0, and so does a file before it" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_import_refuses_its_own_input(tmp_path: Path, capsys: Capture) -> None:
    copy = tmp_path / "trace.json"
    copy.write_bytes(TINY.read_bytes())
    assert main(["import", str(copy), "-o", str(copy)]) == 2
    assert "overwritten" in capsys.readouterr().err
    assert copy.read_bytes() == TINY.read_bytes()


def test_a_cut_file_is_imported_and_not_trusted(tmp_path: Path, capsys: Capture) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(TINY.read_bytes()[:-200])
    output = tmp_path / "trace.parquet"
    assert main(["import", str(cut), "-o", str(output)]) == 3
    assert "cut short" in capsys.readouterr().err
    for command in ("info", "analyze"):
        assert main([command, str(output)]) == 3
        assert "do not trust these numbers" in capsys.readouterr().out


def test_an_output_that_cannot_be_written(tmp_path: Path, capsys: Capture) -> None:
    blocked = tmp_path / "file" / "trace.parquet"
    (tmp_path / "file").touch()
    assert main(["import", str(TINY), "-o", str(blocked)]) == 1
    assert capsys.readouterr().err.startswith("neuron-explorer: ")


def test_ctrl_c_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    event = '{"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":%d,"dur":1,"args":{}}'
    with (tmp_path / "big.json").open("w") as file:
        file.write('{"traceEvents":[' + ",".join(event % i for i in range(1_000_000)) + "]}")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    output = tmp_path / "out"
    output.mkdir()
    command = [*PROGRAM, "import", str(tmp_path / "big.json")]
    with subprocess.Popen(
        [*command, "-o", str(output / "trace.parquet")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary)},
    ) as process:
        deadline = time.monotonic() + 60
        while not any(output.iterdir()) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.005)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"neuron-explorer: interrupted\n")
    assert list(output.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_ctrl_c_during_a_query_of_this_process(made: Path) -> None:
    """DuckDB turns the interrupt into an error of its own."""
    code = (
        "import sys; from neuron_explorer.cli import main; from neuron_explorer.trace import Trace;"
        "slow = 'SELECT sum(range % 7) FROM range(500000000)'; sql = Trace.sql;"
        "Trace.sql = lambda self, *_: print('asking', flush=True) or sql(self, slow);"
        "sys.exit(main(sys.argv[1:]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "info", str(made)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asking\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"neuron-explorer: interrupted\n")


# ---- README ----------------------------------------------------------------


def test_the_commands_of_the_readme_run(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("trace", "before", "after"):
        (tmp_path / f"{name}.json.gz").write_bytes(gzip.compress(TINY.read_bytes()))
    lines = re.findall(r"^ +neuron-explorer (.+)$", README.read_text("utf-8"), re.MULTILINE)
    commands = [shlex.split(line, comments=True) for line in lines]
    # they measure, need torch or serve until they are stopped; tests of their own do so
    slow = {"calibrate", "demo", "mcp", "run", "verify"}
    for arguments in sorted(commands, key=lambda words: words[0] != "import"):
        assert arguments[0] in COMMANDS
        if arguments[0] not in slow:
            assert main(arguments) in {0, 3}, capsys.readouterr().err
    assert len(commands) >= 5


FORMULA = """
from neuron_explorer.collectors.costs import Call, Work, formula


@formula("elementwise", "scale", namespace="ours::")
def scale(call: Call) -> Work:
    x = call.tensor(0)
    return Work(flops=7, reads=[x], writes=[x])
"""
OURS = {
    "ph": "X",
    "cat": "cpu_op",
    "name": "ours::scale",
    "pid": 1,
    "tid": 1,
    "ts": 1,
    "dur": 2,
    "args": {"Input Dims": [[4]], "Input type": ["float"], "Input Strides": [[1]]},
}
FRAME = {
    "ph": "X",
    "cat": "python_function",
    "name": "/x/site-packages/ours/net.py(3): go",
    "pid": 1,
    "tid": 1,
    "ts": 0,
    "dur": 9,
}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (["--user-code", "/x/site-packages/ours"], 3),
        (["--mine", "ours"], 3),
        (["--mine", "ours", "--plumbing", "ours/net.py"], None),
        ([], None),
    ],
)
def test_import_takes_own_formulas_and_own_code(
    said: list[str], line: int | None, tmp_path: Path
) -> None:
    (tmp_path / "trace.json").write_text(json.dumps([FRAME, OURS]))
    (tmp_path / "ops.py").write_text(FORMULA)
    options = ["--costs", "ops.py", *said]
    done = program("import", "trace.json", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    query = "SELECT flops, read_bytes, user_line FROM events WHERE name = 'ours::scale'"
    done = program("sql", "trace.parquet", query, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["rows"] == [[7, 16, line]]


def test_wrong_formulas_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps([FRAME, OURS]))
    done = program("import", "trace.json", "--costs", "none.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(b"neuron-explorer: none.py: no such file of cost formulas")
    assert not (tmp_path / "trace.parquet").exists()
