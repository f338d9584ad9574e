"""Every back end's events end in the same layers and kinds, linked to their op."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from neuron_explorer.collectors.importers import import_file
from neuron_explorer.collectors.importers.categories import device_type, role, runtime_kind
from neuron_explorer.schema import KINDS

Row = dict[str, Any]


def imported(folder: Path, events: list[Row]) -> list[Row]:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    import_file(path, folder / "trace.parquet")
    rows: list[Row] = parquet.read_table(folder / "trace.parquet").to_pylist()
    return rows


def slice_of(cat: str | None, name: str, ts: float | str, dur: float | str, **rest: Any) -> Row:
    event = {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur} | rest
    return event if cat is None else event | {"cat": cat}


BACKENDS = {
    # runtime category, launch call, kernel category, device
    "cuda": ("cuda_runtime", "cudaLaunchKernel", "kernel", "cuda:0"),
    "cuda driver": ("cuda_driver", "cuLaunchKernelEx", "kernel", "cuda:0"),
    "rocm": ("cuda_runtime", "hipExtModuleLaunchKernel", "kernel", "cuda:0"),
    "xpu": ("xpu_runtime", "urEnqueueKernelLaunch", "kernel", "xpu:0"),
    "mtia": ("mtia_runtime", "runFunction - job_prep", "mtia_ccp_events", "mtia:0"),
    "privateuse1": ("privateuse1_runtime", "nrt_execute", "kernel", "privateuseone:0"),
    "privateuse1 driver": ("privateuse1_driver", "launch", "kernel", "privateuseone:0"),
    "torch 1.8": ("Runtime", "cudaLaunchKernel", "Kernel", "cuda:0"),
}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_work_is_linked_to_its_op(tmp_path: Path, backend: tuple[str, str, str, str]) -> None:
    runtime, call, kernel, device = backend
    op = "Operator" if runtime == "Runtime" else "cpu_op"
    rows = imported(
        tmp_path,
        [
            slice_of(op, "aten::add", 0, 10),
            slice_of(runtime, call, 2, 3, args={"correlation": 7}),
            slice_of(kernel, "add", 9, 4, pid=0, tid=5, args={"correlation": 7, "stream": 5}),
        ],
    )
    framework, launch, work = rows
    assert (framework["layer"], framework["kind"]) == ("framework", "op")
    assert (launch["layer"], launch["kind"]) == ("runtime", "launch")
    assert launch["parent_id"] == launch["op_id"] == framework["event_id"]
    assert (work["layer"], work["device"], work["queue"]) == ("hardware", device, "stream 5")
    assert (work["launch_id"], work["op_id"]) == (launch["event_id"], framework["event_id"])
    assert work["link_via"] == "correlation"


def ascend() -> list[Row]:
    """The shape of Ascend's `trace_view.json`: string times, processes instead of categories."""
    return [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Python"}},
        {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "CANN"}},
        {"ph": "M", "name": "process_name", "pid": 300, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "process_labels", "pid": 300, "args": {"labels": "NPU 3"}},
        slice_of("cpu_op", "aten::add", "100.125", "20"),
        slice_of(None, "Node@launch", "105.5", "2.5", pid=2, tid=9),
        {"ph": "s", "id": "105.5-1", "name": "torch_to_npu", "cat": "async_npu"}
        | {"pid": 1, "tid": 1, "ts": "100.125"},
        {"ph": "f", "id": "105.5-1", "name": "torch_to_npu", "cat": "async_npu", "bp": "e"}
        | {"pid": 300, "tid": 12, "ts": "130.250"},
        slice_of(None, "AddKernel", "130.250", "3.500", pid=300, tid=12)
        | {"args": {"Task Type": "AI_VECTOR_CORE"}},
    ]


def test_ascend_is_read_by_process_and_linked_by_flow(tmp_path: Path) -> None:
    rows = {row["name"]: row for row in imported(tmp_path, ascend())}
    work, op = rows["AddKernel"], rows["aten::add"]
    assert (work["layer"], work["kind"]) == ("hardware", "kernel")
    assert (work["device"], work["queue"]) == ("npu:3", "stream 12")
    assert (work["start_ns"], work["duration_ns"]) == (130250, 3500)
    assert (work["op_id"], work["link_via"]) == (op["event_id"], "flow")
    assert (rows["Node@launch"]["layer"], rows["Node@launch"]["kind"]) == ("runtime", "launch")


def test_a_flow_through_the_runtime_gives_launch_and_op(tmp_path: Path) -> None:
    events = ascend()
    for event in events:
        if event["ph"] == "s":
            event |= {"cat": "HostToDevice", "pid": 1, "tid": 1, "ts": "106"}
        if event["ph"] == "f":
            event["cat"] = "HostToDevice"
        if event["name"] == "Node@launch":
            event |= {"pid": 1, "tid": 1, "ts": "106", "cat": "privateuse1_runtime"}
    rows = {row["name"]: row for row in imported(tmp_path, events)}
    assert rows["AddKernel"]["launch_id"] == rows["Node@launch"]["event_id"]
    assert rows["AddKernel"]["op_id"] == rows["aten::add"]["event_id"]


def test_unknown_categories_keep_their_rows_and_say_so(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    events = [slice_of("brand_new", f"x{n}", n, 1) for n in range(3)]
    path.write_text(json.dumps(events))
    report = import_file(path, tmp_path / "trace.parquet")
    (issue,) = report.issues
    assert (issue["kind"], issue["count"], issue["example"]) == ("unknown_category", 3, "brand_new")
    kinds = parquet.read_table(tmp_path / "trace.parquet").column("kind").to_pylist()
    assert kinds == ["slice"] * 3


RUNTIME = {
    "cudaDeviceSynchronize": "sync",
    "cudaStreamSynchronize": "sync",
    "hipEventSynchronize": "sync",
    "urQueueFinish": "sync",
    "synchronizeStream": "sync",
    "cudaStreamWaitEvent": "call",
    "cudaEventQuery": "call",
    "cudaEventRecord": "call",
    "cudaLaunchKernelExC": "launch",
    "hipModuleLaunchKernel": "launch",
    "nrt_execute": "launch",
    "cudaGraphLaunch": "graph_launch",
    "hipGraphLaunch": "graph_launch",
    "cudaMemcpyAsync": "copy",
    "cudaMemsetAsync": "copy",
    "urEnqueueUSMMemcpy": "copy",
    "nrt_tensor_read": "copy",
    "cudaMalloc": "allocation",
    "hipFree": "allocation",
    "cudaHostAlloc": "allocation",
    "cudaGetDevice": "call",
}


@pytest.mark.parametrize(("name", "kind"), RUNTIME.items())
def test_runtime_calls_by_name(name: str, kind: str) -> None:
    assert runtime_kind(name) == kind


@pytest.mark.parametrize(
    ("phase", "category", "name", "expected"),
    [
        ("X", "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", ("hardware", "collective")),
        ("X", "kernel", "sm90_xmma_gemm_bf16", ("hardware", "kernel")),
        ("X", "mtia_ccp_events", "dma_request", ("hardware", "dma")),
        ("X", "cpu_op", "AddmmBackward0", ("framework", "autograd")),
        ("X", "Operator", "ProfilerStep#3", ("framework", "annotation")),
        ("X", "gpu_user_annotation", "step", ("framework", "device_annotation")),
        ("X", "user_annotation", "enumerate(DataLoader)#_It.__next__", ("host", "input_wait")),
        ("X", "Operator", "enumerate(DataLoader)#_It.__next__", ("host", "input_wait")),
        ("X", "user_annotation", "enumerate(DataPipe)#Shuffler", ("host", "input_wait")),
        ("X", "gpu_user_annotation", "enumerate(DataLoader)#", ("framework", "device_annotation")),
        ("X", "user_annotation", "gloo:all_reduce", ("host", "collective")),
        ("X", "user_annotation", "nccl:all_reduce", ("framework", "annotation")),
        ("X", "cuda_sync", "Stream Sync", ("host", "sync")),
        ("i", "cpu_instant_event", "[memory]", ("memory", "alloc")),
        ("i", None, "[memory]", ("memory", "alloc")),
        ("C", None, "counter", ("host", "counter")),
        ("s", "ac2g", "ac2g", ("meta", "flow_start")),
        ("M", None, "process_name", ("meta", "metadata")),
        ("X", "KERNEL", "k", ("hardware", "kernel")),
    ],
)
def test_roles(phase: str, category: str | None, name: str, expected: tuple[str, str]) -> None:
    assert role(phase, category, name, "1") == expected
    assert expected[1] in KINDS[expected[0]]


def test_device_types() -> None:
    assert device_type({"xpu_runtime", "kernel"}, []) == "xpu"
    assert device_type({"kernel"}, ["Ascend Hardware"]) == "npu"
    assert device_type(set(), []) == "cuda"
