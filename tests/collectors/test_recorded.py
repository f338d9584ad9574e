"""Rows a capture wrote down itself stand beside those of the trace and link with them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from neuron_explorer.collectors.importers import ImportOptions, import_file
from neuron_explorer.collectors.recorded import recorded_table
from neuron_explorer.trace import Trace

BASE = 1_700_000_000_000_000_000


def chrome(path: Path) -> Path:
    """One op of 10 us, 100 us behind the base, on thread 7 of this process."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": os.getpid(), "tid": 7}
    event |= {"ts": 100.0, "dur": 10.0, "args": {"External id": 1}}
    path.write_text(json.dumps({"baseTimeNanoseconds": BASE, "traceEvents": [event]}))
    return path


def rows(tmp_path: Path, *recorded: dict[str, object]) -> list[dict[str, object]]:
    output = tmp_path / "trace.parquet"
    options = ImportOptions(recorded=recorded_table(recorded))
    import_file(chrome(tmp_path / "trace.json"), output, options=options)
    with Trace.open([output]) as trace:
        found: list[dict[str, object]] = trace.sql("FROM events ORDER BY event_id").to_pylist()
        return found


def test_a_row_becomes_an_event_on_the_threads_of_the_trace(tmp_path: Path) -> None:
    stack = "/home/me/model.py(3): run\n/home/me/model.py(9): forward"
    op, found = rows(
        tmp_path,
        {
            "role": "compiler/recompile",
            "name": "forward",
            "start_ns": BASE + 5,
            "tid": 7,
            "graph_id": "1/2",
            "reason": "size changed",
            "stack": stack,
            "attributes": '{"cache":3}',
        },
    )
    assert (found["layer"], found["kind"], found["name"]) == ("compiler", "recompile", "forward")
    assert (found["start_ns"], found["duration_ns"]) == (BASE + 5, None)
    assert (found["pid"], found["tid"]) == (op["pid"], op["tid"])
    assert (found["graph_id"], found["reason"]) == ("1/2", "size changed")
    assert (found["user_file"], found["user_line"]) == ("/home/me/model.py", 9)
    assert found["stack"] == stack.split("\n")
    assert (found["source_via"], found["attributes"]) == ("line", '{"cache":3}')
    assert (op["graph_id"], op["reason"], op["source_file"]) == (None, None, None)


def test_a_module_row_names_the_module_of_what_runs_in_it(tmp_path: Path) -> None:
    module = {"role": "framework/module", "name": "layers.3.mlp", "module_class": "MLP", "tid": 7}
    op, found = rows(tmp_path, module | {"start_ns": BASE + 99_000, "duration_ns": 12_000})
    assert op["parent_id"] == found["event_id"]
    assert (op["module"], op["module_class"], op["phase"]) == ("layers.3.mlp", "MLP", "forward")
    assert found["self_ns"] == 2_000


def test_a_row_on_no_thread_is_kept(tmp_path: Path) -> None:
    _, found = rows(tmp_path, {"role": "host/gc", "name": "gc", "start_ns": BASE})
    assert (found["pid"], found["tid"]) == (os.getpid(), None)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(KeyError, match="colour"):
        recorded_table([{"role": "host/gc", "name": "gc", "start_ns": 1, "colour": "red"}])
