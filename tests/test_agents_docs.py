"""What README and docs/agents.md show runs, and a trace alone is understandable."""

from __future__ import annotations

import json
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from pyarrow import parquet

from neuron_explorer.cli import main
from neuron_explorer.schema import COLUMNS

ROOT = Path(__file__).parents[1]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "agents.md"
TINY = Path(__file__).parent / "data" / "tiny.kineto.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("alone")
    assert main(["import", str(TINY), "-qo", str(made / "trace.parquet")]) == 0
    return made


def shown(page: Path, tool: str) -> str:
    """The one line of a page that begins with the name of a tool."""
    (line,) = re.findall(rf"^    ({tool}\..+)$", page.read_text("utf-8"), re.MULTILINE)
    return str(line)


def test_each_reader_of_the_readme_finds_the_same_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"duckdb": duckdb, "pl": pl, "pd": pytest.importorskip("pandas")}
    events = json.loads(TINY.read_text("utf-8"))["traceEvents"]
    total = sum(round(e["dur"] * 1000) for e in events if e.get("cat") == "kernel")
    assert total > 0
    by_name = eval(shown(README, "duckdb"), names).fetchall()
    assert sum(ns for _, ns in by_name) == total
    assert eval(shown(README, "pl"), names)["duration_ns"].sum() == total
    assert eval(shown(README, "pd"), names) == total


def test_columns_are_described_in_the_file_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    schema = parquet.read_schema("trace.parquet")
    assert schema.names == [column.name for column in COLUMNS]
    for column in COLUMNS:
        told = schema.field(column.name).metadata or {}
        assert told[b"doc"].decode() == column.doc
        assert told[b"unit"].decode() == column.unit
    names: dict[str, Any] = {"duckdb": duckdb, "pl": pl}
    ((by_duckdb,),) = eval(shown(PAGE, "duckdb"), names).fetchall()
    for text in (by_duckdb, eval(shown(PAGE, "pl"), names)):
        assert [(c["name"], c["unit"], c["doc"]) for c in json.loads(text)] == [
            (column.name, column.unit, column.doc) for column in COLUMNS
        ]


def test_commands_of_the_page_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    lines = re.findall(r"^ +neuron-explorer (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    commands = [shlex.split(line, comments=True) for line in lines]
    assert {words[0] for words in commands} == {"analyze", "sql", "schema", "guide", "mcp"}
    for words in commands:
        if words[0] != "mcp":  # it serves until its client leaves
            assert main(words) in {0, 3}, capsys.readouterr().err


def test_page_names_every_tool() -> None:
    pytest.importorskip("mcp.server.mcpserver")
    rooms = (("asking", "Asking"), ("looking", "Looking"), ("comparing", "Comparing"),
             ("acting", "Acting"))  # fmt: skip
    names = {
        name
        for module, room in rooms
        for name in getattr(
            import_module(f"neuron_explorer.mcp.{module}_tools"), f"{room}Tools"
        ).NAMES
    }
    rows = [row.split("|")[1] for row in PAGE.read_text("utf-8").splitlines() if "| `" in row]
    assert {name for row in rows for name in row.split("`")[1::2]} == names
