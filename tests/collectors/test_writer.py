"""The Parquet file: whole under its name or not there, and readable by itself."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from pyarrow import parquet

from neuron_explorer.collectors.importers import import_file
from neuron_explorer.collectors.writer import TraceWriter
from neuron_explorer.errors import OutputError
from neuron_explorer.schema import COLUMNS, arrow_schema

IMPORT = """
import sys
from pathlib import Path
from neuron_explorer.collectors.importers import import_file
{before}
import_file(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def trace_file(folder: Path, events: int) -> Path:
    path = folder / "trace.json"
    rows = (
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op{n % 7}", "pid": 1, "tid": 1}
        | {"ts": 10 * n, "dur": 5, "args": {"External id": n, "note": f"event {n}"}}
        for n in range(events)
    )
    path.write_text(json.dumps({"traceEvents": list(rows)}))
    return path


def test_columns_types_and_encodings(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "er" / "trace.parquet"
    import_file(trace_file(tmp_path, 100), output)
    assert parquet.read_schema(output).names == [column.name for column in COLUMNS]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW t AS FROM read_parquet('{output}')")
        found = connection.execute("SELECT column_name, column_type FROM (DESCRIBE t)").fetchall()
    types = dict(found)
    assert types["start_ns"] == "BIGINT"
    assert types["name"] == types["input_shapes"] == types["stack"] == "VARCHAR"
    assert types["compiled"] == "BOOLEAN"
    group = parquet.ParquetFile(output).metadata.row_group(0)
    by_name = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert by_name["name"].compression == "ZSTD"
    assert "RLE_DICTIONARY" in by_name["name"].encodings
    assert set(arrow_schema().names) >= set(types)


def test_the_file_explains_itself(tmp_path: Path) -> None:
    output = tmp_path / "trace.parquet"
    import_file(trace_file(tmp_path, 3), output)
    metadata = parquet.read_schema(output).metadata or {}
    columns = json.loads(metadata[b"neuron_explorer.columns"])
    assert [column["name"] for column in columns] == [column.name for column in COLUMNS]
    assert all(column["doc"] for column in columns)
    assert json.loads(metadata[b"neuron_explorer.summary"])["events"] == 3


def test_an_error_keeps_the_old_file(tmp_path: Path) -> None:
    output = tmp_path / "trace.parquet"
    output.write_text("old")

    def fail() -> None:
        with TraceWriter(output):
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert output.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        import_file(trace_file(tmp_path, 3), tmp_path / "file" / "trace.parquet")


@pytest.mark.parametrize("limit", [2_000, 40_000, 400_000, 800_000])
def test_a_full_disk_keeps_the_old_file(tmp_path: Path, limit: int) -> None:
    path, output = trace_file(tmp_path, 20_000), tmp_path / "trace.parquet"
    output.write_text("old")
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    done = subprocess.run(
        [sys.executable, "-c", IMPORT.format(before=full), path, output],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "OutputError" in done.stderr.splitlines()[-1]
    assert output.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"trace.json", "trace.parquet"}


def test_a_kill_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    path, output = trace_file(tmp_path, 200_000), tmp_path / "trace.parquet"
    child = subprocess.Popen([sys.executable, "-c", IMPORT.format(before=""), path, output])
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".*.partial")) and time.monotonic() < deadline:
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not output.exists()
