"""Costs on hardware work: the innermost op's, divided to the last byte, never twice."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from neuron_explorer.collectors.importers import import_file

Row = dict[str, Any]
MM = {
    "Input Dims": [[64, 128], [128, 32]],
    "Input type": ["float", "float"],
    "Input Strides": [[128, 1], [32, 1]],
    "Concrete Inputs": ["", ""],
}
MM_FLOPS = 2 * 64 * 128 * 32
MM_READ, MM_WRITE = 4 * (64 * 128 + 128 * 32), 4 * 64 * 32


def op(name: str, ts: float, dur: float, **args: Any) -> Row:
    where = {"pid": 1, "tid": 1, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": "cpu_op", "name": name, "args": args} | where


def work(name: str, ts: float, dur: float, correlation: int, cat: str = "kernel") -> list[Row]:
    """A launch at `ts` and its kernel, well after every op."""
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    unit = {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": 10**9 * (1 + ts)}
    args = {"correlation": correlation, "device": 0, "stream": 7}
    return [
        call | {"ts": ts, "dur": 0.1, "args": {"correlation": correlation}},
        unit | {"dur": dur, "args": args},
    ]


def costs(folder: Path, events: list[Row]) -> list[Row]:
    """Hardware rows of an imported trace."""
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    import_file(path, folder / "trace.parquet")
    rows = parquet.read_table(folder / "trace.parquet").to_pylist()
    return [row for row in rows if row["layer"] == "hardware"]


def test_one_kernel_takes_the_whole_cost_of_the_innermost_op(tmp_path: Path) -> None:
    events = [op("aten::matmul", 0, 20, **MM), op("aten::mm", 1, 10, **MM), *work("k", 2, 5, 1)]
    (kernel,) = costs(tmp_path, events)
    assert (kernel["flops"], kernel["read_bytes"], kernel["write_bytes"]) == (
        MM_FLOPS,
        MM_READ,
        MM_WRITE,
    )
    assert (kernel["family"], kernel["cost_via"]) == ("matmul", "formula")
    assert kernel["input_shapes"] == "[[64,128],[128,32]]"
    assert kernel["output_shapes"] == "[[64,32]]"


def test_a_wrapper_is_not_counted_beside_its_inner_op(tmp_path: Path) -> None:
    events = [
        op("aten::matmul", 0, 20, **MM),
        op("aten::mm", 1, 5, **MM),
        *work("gemm", 2, 5, 1),
        op("mystery::inner", 8, 5),
        *work("mystery", 9, 5, 2),
    ]
    gemm, mystery = costs(tmp_path, events)
    assert gemm["flops"] == MM_FLOPS
    assert mystery["flops"] is mystery["read_bytes"] is None
    assert mystery["cost_note"] == "counted_inside"


def test_work_without_a_costed_op_takes_the_enclosing_one(tmp_path: Path) -> None:
    events = [op("aten::mm", 0, 20, **MM), op("mystery::inner", 1, 5), *work("k", 2, 5, 1)]
    (kernel,) = costs(tmp_path, events)
    assert kernel["flops"] == MM_FLOPS


def test_views_with_work_inside_are_looked_through(tmp_path: Path) -> None:
    view = MM | {"Input Dims": [[64, 128], []], "Input Strides": [[128, 1], []]}
    events = [op("aten::mm", 0, 20, **MM), op("aten::view", 1, 5, **view), *work("k", 2, 5, 1)]
    (kernel,) = costs(tmp_path, events)
    assert kernel["family"] == "matmul"


def test_reasons_for_unknown_costs(tmp_path: Path) -> None:
    events = [
        op("aten::add", 0, 5),
        *work("no shapes", 1, 5, 1),
        op("mystery::op", 10, 5),
        *work("no formula", 11, 5, 2),
        *work("no op", 30, 5, 3),
    ]
    notes = {row["name"]: row["cost_note"] for row in costs(tmp_path, events)}
    assert notes == {"no shapes": "no_shapes", "no formula": "no_formula", "no op": "no_op"}


def test_stated_bytes_come_before_formulas(tmp_path: Path) -> None:
    copy = op("aten::copy_", 0, 20, **{"Input Dims": [[4], [4]], "Input type": ["float", "float"]})
    names = ["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)"]
    names += ["Memcpy DtoD (Device -> Device)", "Memset (Device)"]
    events = [copy]
    for number, name in enumerate(names):
        cat = "gpu_memset" if "Memset" in name else "gpu_memcpy"
        call, unit = work(name, 1 + number, 5, number + 1, cat)
        unit["args"]["bytes"] = 1000
        events += [call, unit]
    moved = {r["name"]: (r["read_bytes"], r["write_bytes"]) for r in costs(tmp_path, events)}
    assert list(moved.values()) == [(0, 1000), (1000, 0), (1000, 1000), (0, 1000)]


def test_collectives_move_what_their_messages_say(tmp_path: Path) -> None:
    call, unit = work("ncclDevKernel_AllGather_RING_LL", 1, 5, 1)
    unit["args"] |= {"In msg nelems": 10, "Out msg nelems": 40, "dtype": "BFloat16"}
    (row,) = costs(tmp_path, [call, unit])
    assert (row["kind"], row["family"]) == ("collective", "collective")
    assert (row["read_bytes"], row["write_bytes"]) == (20, 80)
    assert row["cost_via"] == "reported"


def test_list_dtypes_come_from_the_ops_around(tmp_path: Path) -> None:
    cat = {"Input Dims": [[[2, 8], [2, 8]], []], "Input type": ["TensorList", "Scalar"]}
    cat |= {"Input Strides": [[[8, 1], [8, 1]], []], "Concrete Inputs": ["", "0"]}
    relu = {"Input Dims": [[4, 8]], "Input type": ["c10::Half"], "Input Strides": [[8, 1]]}
    events = [op("aten::cat", 0, 5, **cat), *work("cat", 1, 5, 1), op("aten::relu", 9, 5, **relu)]
    (row,) = costs(tmp_path, events)
    assert (row["read_bytes"], row["write_bytes"]) == (64, 64)
    assert "list_dtype_inferred" in row["cost_note"]


@settings(max_examples=40)  # each is a whole import
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_shares_follow_duration_and_sum_to_the_op(durations: list[int]) -> None:
    events = [op("aten::mm", 0, 20, **MM)]
    for number, duration in enumerate(durations):
        events += work(f"k{number}", 1 + number / 100, duration, number + 1)
    # tmp_path would be shared by all examples
    with tempfile.TemporaryDirectory() as folder:
        rows = costs(Path(folder), events)
    assert sum(row["flops"] for row in rows) == MM_FLOPS
    assert sum(row["read_bytes"] for row in rows) == MM_READ
    assert sum(row["write_bytes"] for row in rows) == MM_WRITE
    total = sum(durations)
    for row, duration in zip(rows, durations, strict=True):
        share = duration / total if total else 1 / len(durations)
        assert abs(row["flops"] - MM_FLOPS * share) <= 1
