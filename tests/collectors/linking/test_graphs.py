"""Compilations and compiled graphs in traces that nobody listened to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from neuron_explorer.collectors.importers import import_file
from neuron_explorer.trace import Trace

Row = dict[str, Any]


def op(name: str, ts: float, dur: float, cat: str = "cpu_op", **args: Any) -> Row:
    named = {key.replace("_", " "): value for key, value in args.items()}
    event = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
    return event | {"args": named}


EVENTS = [
    op("dynamo", 0, 100),
    op("dynamo_data: compile_id=2/0", 1, 1, "user_annotation"),
    op("entire_frame_compile", 3, 95),
    op("_compile.compile_inner (dynamo_timed)", 4, 90),
    op("aten::empty", 10, 5),
    op("Torch-Compiled Region: 2/0", 110, 50),
    op("CompiledFunction", 111, 45, Sequence_number=5, Fwd_thread_id=0),
    op("## Call CompiledFxGraph fkey ##", 112, 40, "user_annotation"),
    op("graph_0_cpp_fused_add_0", 115, 20),
    op("autograd::engine::evaluate_function: CompiledFunctionBackward", 200, 150)
    | {"args": {"Sequence number": 5, "Fwd thread id": 1}},
    op("CompiledFunctionBackward", 201, 148, Sequence_number=5, Fwd_thread_id=1),
    op("entire_backward_compile", 205, 100),
    op("aten::mul", 210, 5),
    op("## Call CompiledFxGraph fother ##", 320, 20, "user_annotation"),
    op("graph_0_cpp_fused_mul_0", 322, 10),
    op("dynamo", 400, 10, "user_annotation"),
]


def opened(folder: Path) -> Trace:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    import_file(path, folder / "trace.parquet")
    return Trace.open([folder / "trace.parquet"])


def test_a_compilation_is_one_row_and_the_rest_are_its_stages(tmp_path: Path) -> None:
    rows = opened(tmp_path).sql("SELECT * FROM compilations").to_pylist()
    assert [(row["kind"], row["name"]) for row in rows] == [
        ("compile", "dynamo"),
        ("compile", "entire_backward_compile"),
    ]
    assert [row["graph_id"] for row in rows] == ["2/0", "2/0"]
    assert [row["duration_ns"] for row in rows] == [100_000, 100_000]


def test_what_ran_for_a_compilation_is_no_op_and_its_time_nobodys(tmp_path: Path) -> None:
    trace = opened(tmp_path)
    rows = {row["name"]: row for row in trace.sql("SELECT * FROM events").to_pylist()}
    assert rows["aten::empty"]["phase"] == rows["aten::mul"]["phase"] == "compile"
    assert rows["aten::mul"]["compiled"] is False
    assert rows["CompiledFunctionBackward"]["compile_ns"] == 100_000
    assert rows["CompiledFunction"]["compile_ns"] is None
    names = {row["name"] for row in trace.sql("SELECT name FROM ops").to_pylist()}
    assert names == {
        "Torch-Compiled Region: 2/0",
        "CompiledFunction",
        "graph_0_cpp_fused_add_0",
        "graph_0_cpp_fused_mul_0",
    }


def test_forward_and_backward_are_of_one_graph(tmp_path: Path) -> None:
    rows = {row["name"]: row for row in opened(tmp_path).sql("SELECT * FROM events").to_pylist()}
    for name in ("graph_0_cpp_fused_add_0", "graph_0_cpp_fused_mul_0"):
        assert (rows[name]["graph_id"], rows[name]["compiled"]) == ("2/0", True)
