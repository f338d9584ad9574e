"""What `analyze`, `info`, `sql`, `schema` and `devices` print, seen from outside."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from program import HOSTILE, PROGRAM, TINY, hostile_trace, on_a_terminal, program
from rich.cells import cell_len

from neuron_explorer.cli import main

Capture = pytest.CaptureFixture[str]
VOCABULARIES = ("layers", "notes", "issues", "thresholds", "analyzers")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_trace(tmp_path_factory.mktemp("made") / "made.parquet")


# ---- analyze and info ------------------------------------------------------


def test_analyze_takes_a_chrome_trace_directly(capsys: Capture) -> None:
    code = main(["analyze", str(TINY)])
    page = capsys.readouterr().out
    assert code in {0, 3}
    assert "device" in page
    assert "h100-sxm" in page


@pytest.mark.parametrize("command", ["info", "analyze"])
def test_json_is_the_same_bytes_every_time(command: str, made: Path) -> None:
    first, second = (program(command, made, "--json") for _ in range(2))
    assert first.stdout == second.stdout
    assert first.stderr == b""
    assert json.loads(first.stdout)["exit_code"] == first.returncode


def test_json_of_an_imported_file_names_no_temporary_path(capsys: Capture) -> None:
    main(["analyze", str(TINY), "--json"])
    text = capsys.readouterr().out
    assert json.loads(text)["files"] == [str(TINY)]
    assert "neuron_explorer-" not in text


def test_analyze_limits_chooses_and_sets_thresholds(made: Path, capsys: Capture) -> None:
    main(["analyze", str(made), "--only", "device_idle", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["summary"]["ran"] == ["device_idle"]
    assert told["findings"]
    main(["analyze", str(made), "--param", "device_idle.min_idle_share=1.0", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert "device_idle" not in {finding["analyzer"] for finding in told["findings"]}
    main(["analyze", str(made), "--limit", "1", "--json"])
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 1


def test_the_output_file_sets_the_format(made: Path, tmp_path: Path, capsys: Capture) -> None:
    main(["analyze", str(made), "-o", str(tmp_path / "report.json")])
    main(["analyze", str(made), "-o", str(tmp_path / "report.md")])
    main(["analyze", str(made), "-o", str(tmp_path / "report.txt")])
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["findings"]
    assert (tmp_path / "report.md").read_text("utf-8").startswith("### neuron-explorer")
    assert "\x1b" not in (tmp_path / "report.txt").read_text("utf-8")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ("analyze", {}),
        ("analyze", {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}),
        ("analyze", {"LC_ALL": "C"}),
        ("analyze", {"NO_COLOR": "1", "FORCE_COLOR": "1"}),
        ("info", {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}),
    ],
)
def test_pages_are_plain_text_off_a_terminal(command: str, env: dict[str, str], made: Path) -> None:
    done = program(command, made, env=env | {"COLUMNS": "40"})
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
    page = done.stdout.decode("ascii" if "PYTHONIOENCODING" in env else "utf-8")
    assert not set("█░▲→…") & set(page) or "LC_ALL" not in env
    if "PYTHONIOENCODING" not in env:  # an escaped name takes more cells than it had
        assert max(map(cell_len, page.splitlines())) <= 40


@pytest.mark.parametrize(
    ("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_has_colour_unless_it_must_not(
    env: dict[str, str],
    coloured: bool,  # noqa: FBT001
    made: Path,
) -> None:
    written = on_a_terminal(["analyze", str(made)], env)
    assert "█".encode() in written
    assert (b"\x1b[" in written) is coloured


def test_a_terminal_shows_how_far_an_import_is(tmp_path: Path) -> None:
    arguments = ["import", str(TINY), "-o", str(tmp_path / "trace.parquet")]
    hidden_cursor = b"\x1b[?25l"
    assert hidden_cursor in on_a_terminal(arguments, {})
    assert hidden_cursor not in on_a_terminal(arguments, {"TERM": "dumb"})
    assert on_a_terminal([*arguments, "-q"], {}) == b""


def test_a_folder_and_several_files_are_one_trace(made: Path, capsys: Capture) -> None:
    for files in ([str(made.parent)], [str(made), str(made)], [str(made.parent / "*.parquet")]):
        main(["info", *files, "--json"])
        assert json.loads(capsys.readouterr().out)["files"] == files


def test_a_chip_can_be_chosen(made: Path, capsys: Capture) -> None:
    main(["info", str(made), "--device", "trn2", "--json"])
    assert json.loads(capsys.readouterr().out)["device"][0]["chip"] == "trn2"


# ---- sql -------------------------------------------------------------------


def test_sql_json_is_exact(made: Path) -> None:
    done = program("sql", made, "SELECT 1 AS a, NULL AS b", "--json")
    assert done.stdout == b'{"columns":["a","b"],"rows":[[1,null]],"truncated":false}\n'
    assert (done.returncode, done.stderr) == (0, b"")


def test_sql_shows_hostile_names_escaped_in_a_table_and_raw_as_data(
    made: Path, capsys: Capture
) -> None:
    query = "SELECT DISTINCT name FROM kernels"
    assert main(["sql", str(made), query]) == 0
    assert "[bold]x[/red] \\x1b[31m\\t中文" in capsys.readouterr().out
    assert main(["sql", str(made), query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[HOSTILE]]
    assert main(["sql", str(made), query, "--format", "csv"]) == 0
    assert capsys.readouterr().out == f"name\n{HOSTILE}\n"


def test_a_limit_that_bites_is_said(made: Path, capsys: Capture) -> None:
    assert main(["sql", str(made), "SELECT * FROM range(5)", "--limit", "2", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == {"columns": ["range"], "rows": [[0], [1]], "truncated": True}
    assert "only the first 2 rows" in told.err


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO 'stolen.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "CREATE TABLE t (a INT)",
        "SELECT nonsense FROM work",
        "SELEC 1",
        "",
    ],
)
def test_a_query_that_is_refused_or_wrong_is_one_line(
    query: str, made: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sql", str(made), query]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("neuron-explorer: query ")
    assert len(told.err.splitlines()) <= 2
    assert list(tmp_path.iterdir()) == []


def test_a_query_without_end_is_stopped(made: Path, capsys: Capture) -> None:
    endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range < b.range"
    assert main(["sql", str(made), endless, "--timeout", "0.2"]) == 1
    assert "query stopped after 0.2 s" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error(made: Path) -> None:
    command = [*PROGRAM, "sql", str(made)]
    with subprocess.Popen(
        [*command, "SELECT * FROM range(200000)", "--format", "csv", "--limit", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"range\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


# ---- raw times ---


@pytest.fixture
def overrun(tmp_path: Path) -> Path:
    """A kernel that claims 3.4 s and so runs on over two later ones of its queue."""
    spans = [(0, 10, "a"), (20, 3_400_000, "long"), (35, 10, "b"), (50, 10, "b")]
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur}
        | {"args": {"device": 0, "stream": 7}}
        for ts, dur, name in spans
    ]
    path = tmp_path / "overrun.json"
    path.write_text(json.dumps({"traceEvents": events}), "utf-8")
    return path


RANKING = "SELECT name, total_ns FROM kernels ORDER BY total_ns DESC, name"


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ([], [["b", 20_000], ["long", 15_000], ["a", 10_000]]),
        (["--raw"], [["long", 3_400_000_000], ["b", 20_000], ["a", 10_000]]),
    ],
)
def test_kernels_rank_by_repaired_times_unless_raw_ones_are_asked_for(
    options: list[str], rows: list[list[object]], overrun: Path, capsys: Capture
) -> None:
    assert main(["sql", str(overrun), RANKING, "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == rows
    main(["info", str(overrun), "--json", *options])
    told = json.loads(capsys.readouterr().out)
    assert told["raw_times"] is bool(options)
    assert told["device"][0]["work_ns"] == sum(int(str(total)) for _, total in rows)


@pytest.mark.parametrize("command", ["info", "analyze"])
@pytest.mark.parametrize("form", ["text", "md"])
def test_a_page_says_that_one_repaired_event_held_nearly_all_time(
    command: str, form: str, overrun: Path, capsys: Capture
) -> None:
    main([command, str(overrun), "--format", form])
    page = capsys.readouterr().out
    assert "1 event = 99.9 % of raw time" in page
    assert "no repairs" not in page
    main([command, str(overrun), "--format", form, "--raw"])
    assert "as recorded, no repairs" in capsys.readouterr().out


# ---- schema and devices ----------------------------------------------------


def test_schema_explains_the_event_table_and_a_view(capsys: Capture) -> None:
    assert main(["schema"]) == 0
    page = capsys.readouterr().out
    assert "roofline" in page
    assert "launch_id" in page
    assert main(["schema", "roofline"]) == 0
    assert "memory_floor_ns" in capsys.readouterr().out


def test_schema_explains_words_and_thresholds(capsys: Capture) -> None:
    assert main(["schema", "notes"]) == 0
    assert "no_shapes" in capsys.readouterr().out
    assert main(["schema", "thresholds"]) == 0
    assert "bound_share" in capsys.readouterr().out


@pytest.mark.parametrize("name", [[], ["roofline"], ["notes"], ["layers"]])
def test_schema_fits_a_narrow_page(
    name: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["schema", *name]) == 0
    page = capsys.readouterr().out
    assert max(map(cell_len, page.splitlines())) <= 40
    assert "\\n" not in page


def test_schema_as_json_and_markdown(capsys: Capture) -> None:
    assert main(["schema", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tables = {table["name"]: table for table in told["tables"]}
    columns = {column["name"]: column for column in tables["trace.parquet"]["columns"]}
    assert columns["duration_ns"]["unit"] == "ns"
    columns = {column["name"]: column for column in tables["roofline"]["columns"]}
    assert columns["bound"]["type"] == "VARCHAR"
    assert columns["floor_ns"]["unit"] == "ns"
    assert all(column["type"] for table in tables.values() for column in table["columns"])
    words = {key: {term["name"]: term for term in told[key]} for key in VOCABULARIES}
    assert words["notes"]["graph_replay"]["value"] == "unknown"
    assert words["notes"]["dense_assumed"]["value"] == "assumed"
    assert words["thresholds"]["bound_share"]["value"] == 0.3
    assert words["analyzers"]["device_idle.min_idle_share"]["doc"]
    assert words["issues"]["duration_overrun"]["value"]
    assert "kernel" in words["layers"]["hardware"]["value"]
    assert main(["schema", "work", "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("## work\n")


def test_devices_with_numbers_and_sources(capsys: Capture) -> None:
    assert main(["devices"]) == 0
    assert "h100-sxm" in capsys.readouterr().out
    assert main(["devices", "h100-sxm"]) == 0
    page = capsys.readouterr().out
    assert "3.35 TB/s" in page
    assert "stas00/ml-engineering" in page
    assert main(["devices", "h100-sxm", "--json"]) == 0
    (chip,) = json.loads(capsys.readouterr().out)["devices"]
    assert chip["peak_flops"]["bf16"] == 989e12
    assert main(["devices", "--format", "md"]) == 0
    assert "| name | memory |" in capsys.readouterr().out
