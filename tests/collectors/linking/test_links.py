"""Launches, ops, forwards, sources, steps and phases of hand-made traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from neuron_explorer.collectors.importers import ImportOptions, import_file
from neuron_explorer.collectors.linking.frames import Owners

Row = dict[str, Any]


def linked(folder: Path, events: list[Row], **options: Any) -> dict[str, Row]:
    """Rows by name of an imported trace."""
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    import_file(path, folder / "trace.parquet", options=ImportOptions(**options))
    rows = parquet.read_table(folder / "trace.parquet").to_pylist()
    return {row["name"]: row for row in rows}


def host(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Row:
    event = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}
    return event | {"args": {key.replace("_", " "): value for key, value in args.items()}}


def op(name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Row:
    return host("cpu_op", name, ts, dur, tid, **args)


def frame(name: str, ts: float, dur: float, tid: int = 1) -> Row:
    return host("python_function", name, ts, dur, tid)


def launch(ts: float, correlation: int, tid: int = 1) -> Row:
    return host("cuda_runtime", "cudaLaunchKernel", ts, 1, tid, correlation=correlation)


def kernel(name: str, ts: float, dur: float, correlation: int, **args: Any) -> Row:
    event = host("kernel", name, ts, dur, 7, correlation=correlation, device=0, stream=7)
    event["pid"] = 0
    event["args"] |= {key.replace("_", " "): value for key, value in args.items()}
    return event


MODEL = "/home/me/train.py(10): step"
LIBRARY = "transformers/models/bert/modeling_bert.py(123): forward"
TORCH = "torch/nn/modules/linear.py(134): forward"
STDLIB = "contextlib.py(21): inner"


def test_source_is_the_innermost_frame_outside_torch_and_stdlib(tmp_path: Path) -> None:
    found = linked(
        tmp_path,
        [
            frame(MODEL, 0, 100),
            frame(LIBRARY, 5, 90),
            frame("nn.Module: Linear_7", 6, 80),
            frame(TORCH, 7, 70),
            frame(STDLIB, 8, 60),
            frame("<built-in function linear>", 9, 50),
            op("aten::linear", 10, 40),
            launch(12, 1),
            kernel("gemm", 50, 10, 1),
        ],
    )
    for name, via in (("aten::linear", "function"), ("gemm", "launch")):
        row = found[name]
        assert (row["source_file"], row["source_line"], row["source_function"]) == (
            "transformers/models/bert/modeling_bert.py",
            123,
            "forward",
        )
        assert (row["user_file"], row["user_line"]) == ("/home/me/train.py", 10)
        assert row["stack"] == f"{MODEL}\n{LIBRARY}"
        assert (row["module"], row["module_class"]) == ("Linear_7", "Linear")
        assert row["source_via"] == via


def test_what_is_mine_makes_code_the_users_own(tmp_path: Path) -> None:
    events = [frame("/opt/venv/lib/python3.11/site-packages/ours/net.py(5): go", 0, 9)]
    events.append(op("aten::add", 1, 2))
    assert linked(tmp_path, events)["aten::add"]["user_file"] is None
    prefix = "/opt/venv/lib/python3.11/site-packages/ours"
    row = linked(tmp_path, events, owners=Owners(mine=(prefix,)))["aten::add"]
    assert row["user_file"] == row["source_file"] == f"{prefix}/net.py"


def test_plumbing_gives_its_work_to_the_line_that_called_it(tmp_path: Path) -> None:
    wrapper = "ours/wrap.py(7): wrapper"
    events = [frame(MODEL, 0, 9), frame(LIBRARY, 1, 8), frame(wrapper, 2, 6)]
    events.append(op("aten::add", 3, 2))
    assert linked(tmp_path, events)["aten::add"]["source_file"] == "ours/wrap.py"
    row = linked(tmp_path, events, owners=Owners(plumbing=("ours",)))["aten::add"]
    assert (row["source_file"], row["source_line"]) == (LIBRARY.partition("(")[0], 123)
    assert (row["user_file"], row["stack"]) == ("/home/me/train.py", f"{MODEL}\n{LIBRARY}")
    stack = f"{wrapper};{LIBRARY};{MODEL}"
    row = linked(
        tmp_path,
        [op("aten::add", 3, 2, Call_stack=stack)],
        owners=Owners(mine=("transformers",), plumbing=("ours",)),
    )["aten::add"]
    assert (row["user_line"], row["source_line"]) == (123, 123)


def test_without_python_frames_the_source_is_unknown(tmp_path: Path) -> None:
    found = linked(tmp_path, [op("aten::add", 0, 10), launch(1, 1), kernel("k", 5, 5, 1)])
    for row in found.values():
        assert row["source_file"] is row["source_line"] is row["stack"] is row["source_via"] is None


def test_call_stacks_of_old_traces_give_call_lines(tmp_path: Path) -> None:
    stack = f"{TORCH};{LIBRARY};{MODEL};<frozen importlib>(1): run"
    row = linked(tmp_path, [op("aten::mm", 0, 5, Call_stack=stack)])["aten::mm"]
    assert (row["source_line"], row["source_via"], row["user_line"]) == (123, "call", 10)
    assert row["stack"] == f"{MODEL}\n{LIBRARY}"


def test_backward_takes_the_line_of_its_forward(tmp_path: Path) -> None:
    found = linked(
        tmp_path,
        [
            frame(MODEL, 0, 50),
            op("aten::linear", 1, 20, Sequence_number=5, Fwd_thread_id=0),
            op("aten::addmm", 2, 10, Sequence_number=5, Fwd_thread_id=0),
            op("aten::relu", 30, 5, Sequence_number=6, Fwd_thread_id=0),
            op("autograd::engine::evaluate_function: AddmmBackward0", 100, 30, 2)
            | {"args": {"Sequence number": 5, "Fwd thread id": 1}},
            op("AddmmBackward0", 101, 28, 2, Sequence_number=5, Fwd_thread_id=1),
            op("aten::mm", 105, 10, 2),
            launch(107, 1, 2),
            kernel("gemm", 120, 5, 1),
        ],
    )
    forward = found["aten::addmm"]["event_id"]
    for name in ("AddmmBackward0", "aten::mm", "gemm"):
        assert found[name]["forward_id"] == forward
        assert found[name]["source_file"] == "/home/me/train.py"
        assert found[name]["phase"] == "backward"
    assert found["aten::mm"]["source_via"] == "forward"
    assert found["aten::relu"]["forward_id"] is None
    assert found["aten::relu"]["phase"] == "forward"


def test_steps_and_phases(tmp_path: Path) -> None:
    found = linked(
        tmp_path,
        [
            host("user_annotation", "ProfilerStep#3", 0, 100),
            host("user_annotation", "ProfilerStep#4", 100, 100),
            host("user_annotation", "enumerate(DataLoader)#_Next", 1, 9),
            op("aten::stack", 2, 3),
            host("user_annotation", "Optimizer.step#Adam.step", 50, 20),
            op("aten::addcdiv_", 52, 5),
            launch(53, 1),
            kernel("adam", 130, 10, 1),
            op("aten::plain", 150, 5),
            op("aten::after", 250, 5),
        ],
    )
    assert {name: found[name]["step"] for name in ("aten::stack", "adam", "aten::plain")} == {
        "aten::stack": 3,
        "adam": 3,
        "aten::plain": 4,
    }
    assert found["aten::after"]["step"] is None
    phases = {name: row["phase"] for name, row in found.items()}
    assert phases["aten::stack"] == "input"
    assert phases["aten::addcdiv_"] == phases["adam"] == "optimizer"
    assert phases["aten::plain"] == "other"


def test_a_step_that_a_hook_of_the_optimizer_begins_is_no_optimizer(tmp_path: Path) -> None:
    found = linked(
        tmp_path,
        [
            host("user_annotation", "ProfilerStep#3", 0, 65),
            host("user_annotation", "Optimizer.step#Adam.step", 50, 20),
            op("aten::addcdiv_", 52, 5),
            host("user_annotation", "ProfilerStep#4", 65, 100),
            op("aten::zero_", 66, 2),
            op("aten::next", 80, 5),
        ],
    )
    phases = {
        name: found[name]["phase"] for name in ("aten::addcdiv_", "aten::zero_", "aten::next")
    }
    assert list(phases.values()) == ["optimizer", "optimizer", "other"]


@pytest.mark.parametrize("closure", [True, False])
def test_a_closure_of_the_optimizer_has_its_own_passes(tmp_path: Path, *, closure: bool) -> None:
    events = [
        host("user_annotation", "Optimizer.step#LBFGS.step", 0, 100),
        op("aten::mm", 10, 5, Sequence_number=3),
        op("aten::addcdiv_", 60, 5),
    ]
    if closure:
        node = "autograd::engine::evaluate_function: MmBackward0"
        events += [op(node, 30, 20), op("aten::t", 35, 5)]
    found = linked(tmp_path, events)
    phases = {name: row["phase"] for name, row in found.items() if name.startswith("aten::")}
    # without a backward the number is that of an optimizer's own op, outside of no_grad
    assert phases["aten::mm"] == ("forward" if closure else "optimizer")
    assert phases.get("aten::t") == ("backward" if closure else None)
    assert phases["aten::addcdiv_"] == "optimizer"


def test_an_optimizer_that_steps_in_a_backward_is_one(tmp_path: Path) -> None:
    node = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    found = linked(
        tmp_path,
        [
            op(node, 0, 100),
            host("user_annotation", "Optimizer.step#SGD.step", 20, 40),
            op("aten::add_", 30, 5, Sequence_number=3),
            op("aten::detach", 80, 5),
        ],
    )
    assert [found[name]["phase"] for name in ("aten::add_", "aten::detach")] == [
        "optimizer",
        "backward",
    ]


def test_a_launch_that_outlasts_its_op_still_belongs_to_it(tmp_path: Path) -> None:
    events = [op("aten::add", 0, 10), launch(9, 1) | {"dur": 5}, kernel("k", 20, 5, 1)]
    found = linked(tmp_path, events)
    assert found["k"]["op_id"] == found["aten::add"]["event_id"]


def test_an_op_that_has_ended_is_not_around_a_launch(tmp_path: Path) -> None:
    events = [op("aten::add", 0.5, 10), launch(10.5, 1), kernel("k", 20, 5, 1)]
    assert linked(tmp_path, events)["k"]["op_id"] is None


@pytest.mark.parametrize(("agree", "expected"), [(True, 2), (False, None)])
def test_external_ids_are_used_only_where_they_agree(
    tmp_path: Path, *, agree: bool, expected: int | None
) -> None:
    hint = 11 if agree else 12
    found = linked(
        tmp_path,
        [
            op("aten::a", 0, 10, External_id=11),
            launch(1, 1),
            op("aten::b", 20, 10, External_id=12),
            kernel("a", 11, 5, 1, External_id=hint),
            kernel("lost", 40, 5, 99, External_id=12),
        ],
    )
    assert found["lost"]["op_id"] == expected
    assert found["lost"]["link_via"] == ("external_id" if agree else None)


def test_compiled_regions_mark_what_runs_in_them(tmp_path: Path) -> None:
    found = linked(
        tmp_path,
        [
            op("Torch-Compiled Region: 0/0", 0, 50),
            op("triton_poi_fused_add_0", 5, 10),
            launch(6, 1),
            kernel("triton_poi_fused_add_0_kernel", 60, 5, 1),
            op("aten::eager", 100, 5),
            kernel("unlaunched", 200, 5, 77),
        ],
    )
    compiled = {name: row["compiled"] for name, row in found.items()}
    assert compiled["triton_poi_fused_add_0_kernel"] is True
    assert compiled["triton_poi_fused_add_0"] is True
    assert compiled["aten::eager"] is False
    assert compiled["unlaunched"] is None


def test_memory_rows_name_their_op_and_device(tmp_path: Path) -> None:
    def memory(ts: float, size: int, kind: int) -> Row:
        args = {"Bytes": size, "Device Type": kind, "Device Id": 0, "Total Allocated": 100}
        where = {"pid": 1, "tid": 1, "ts": ts, "s": "t"}
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "args": args} | where

    path = tmp_path / "trace.json"
    events = [op("aten::empty", 0, 10), memory(5, 512, 1), memory(6, -512, 0)]
    path.write_text(json.dumps(events))
    import_file(path, tmp_path / "trace.parquet")
    made, alloc, free = parquet.read_table(tmp_path / "trace.parquet").to_pylist()
    assert (alloc["kind"], alloc["alloc_bytes"], alloc["device"]) == ("alloc", 512, "cuda:0")
    assert (free["kind"], free["alloc_bytes"], free["device"]) == ("free", -512, "cpu")
    assert alloc["op_id"] == alloc["parent_id"] == made["event_id"]
    assert alloc["device_allocated"] == 100
    # torch's own total of the host counts what was freed while nobody looked
    assert free["device_allocated"] is None


CHECKPOINT = "torch/utils/checkpoint.py"


def test_a_forward_in_a_backward_is_recomputed_where_frames_say_so(tmp_path: Path) -> None:
    evaluate = "autograd::engine::evaluate_function: {}"
    found = linked(
        tmp_path,
        [
            op("aten::sin", 1, 2, Sequence_number=5, Fwd_thread_id=0),
            # a forward calls the same function: nothing runs again there
            frame(f"{CHECKPOINT}(1657): recompute_fn", 4, 5),
            op("aten::early", 5, 2),
            op(evaluate.format("SinBackward0"), 100, 100, Sequence_number=5, Fwd_thread_id=1),
            op("SinBackward0", 101, 90, Sequence_number=5, Fwd_thread_id=1),
            frame(f"{CHECKPOINT}(1165): unpack_hook", 102, 80),
            op("aten::empty", 103, 1),
            frame(f"{CHECKPOINT}(1657): recompute_fn", 105, 40),
            frame(MODEL, 106, 30),
            op("aten::relu", 107, 2),
            launch(108, 1),
            op(evaluate.format("Inner"), 120, 10),
            op("aten::inner", 121, 2),
            op("aten::mul", 185, 2),
            kernel("relu_kernel", 300, 5, 1),
            kernel("unlaunched", 310, 5, 77),
        ],
    )
    again = {name: row["recomputed"] for name, row in found.items()}
    assert {name for name, value in again.items() if value} == {
        "aten::relu",
        "cudaLaunchKernel",
        "relu_kernel",
        f"{CHECKPOINT}(1657): recompute_fn",
        MODEL,
    }
    assert again["unlaunched"] is None
    assert found["aten::relu"]["forward_id"] is found["relu_kernel"]["forward_id"] is None
    assert found["aten::mul"]["forward_id"] == found["aten::sin"]["event_id"]
    assert found["aten::relu"]["phase"] == found["relu_kernel"]["phase"] == "backward"
