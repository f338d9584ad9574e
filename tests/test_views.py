"""The views over hand-made events: totals, times and links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Row, kernel, launch, op, row, step, write_trace
from neuron_explorer.trace import Trace
from neuron_explorer.view_files import parse_view, views


def opened(folder: Path, rows: list[Row], metadata: dict[str, object] | None = None) -> Trace:
    return Trace.open([write_trace(folder / "t.parquet", rows, metadata)])


def ask(trace: Trace, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = trace.sql(query).to_pylist()
    return rows


def health(trace: Trace, check: str) -> dict[str, Any]:
    return ask(trace, f"SELECT * FROM health WHERE check_name = '{check}'")[0]


# ---- every view -----------------------------------------------------------


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return opened(tmp_path_factory.mktemp("empty"), [])


@pytest.mark.parametrize("name", list(views()))
def test_header_names_the_columns_of_the_view_in_order(empty: Trace, name: str) -> None:
    assert list(views()[name].columns) == empty.sql(f"SELECT * FROM {name}").column_names


@pytest.mark.parametrize("name", list(views()))
def test_the_catalog_describes_the_view(empty: Trace, name: str) -> None:
    told = empty.query(
        f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{name}'"
        " AND schema_name = 'main'",
    )
    assert told.rows == list(views()[name].columns.items())
    assert all(len(meaning) > 4 for meaning in views()[name].columns.values())


def test_every_view_of_the_contract_is_there() -> None:
    promised = (
        "events ops work devices queues gaps launches steps lines modules kernels roofline chains"
        " collectives allocations fallbacks compilations syncs import_issues chips trace_metadata"
        " health"
        " thresholds"
    )
    assert set(promised.split()) <= views().keys()


def test_views_come_after_those_they_read() -> None:
    order = list(views())
    for name, view in views().items():
        assert all(order.index(read) < order.index(name) for read in view.reads)


@pytest.mark.parametrize("text", ["SELECT 1", "-- +++\nSELECT 1", "SELECT 1\n-- +++\n-- +++\n"])
def test_view_file_without_header_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must start with a header"):
        parse_view("x", text, frozenset())


# ---- busy time ------------------------------------------------------------


def test_small_overlap_on_one_queue_counts_once_in_busy_time(tmp_path: Path) -> None:
    trace = opened(tmp_path, [kernel(0, 10), kernel(9, 8), kernel(16, 5)])
    assert ask(trace, "SELECT events, work_ns, busy_ns, span_ns, idle_ns FROM devices") == [
        {"events": 3, "work_ns": 23, "busy_ns": 21, "span_ns": 21, "idle_ns": 0}
    ]
    assert {row["status"] for row in ask(trace, "SELECT status FROM health")} <= {"ok", "warn"}


def test_two_queues_do_not_make_a_device_more_than_busy(tmp_path: Path) -> None:
    waits = row("host", "sync", 0, 100, device="cuda:0", queue="stream 7")
    trace = opened(tmp_path, [kernel(0, 100), kernel(0, 100, queue="stream 8"), waits])
    assert ask(trace, "SELECT work_ns, busy_ns, span_ns FROM devices") == [
        {"work_ns": 200, "busy_ns": 100, "span_ns": 100}
    ]
    assert ask(trace, "SELECT queue, busy_ns FROM queues") == [
        {"queue": "stream 7", "busy_ns": 100},
        {"queue": "stream 8", "busy_ns": 100},
    ]


def test_rows_without_usable_time_are_in_no_total(tmp_path: Path) -> None:
    good = [kernel(10**9 + i * 20, 10) for i in range(5)]
    lost = [kernel(None, 0), kernel(None, None), kernel(10**9, None)]
    trace = opened(tmp_path, [*good, *lost])
    assert ask(trace, "SELECT events, work_ns, busy_ns, span_ns FROM devices") == [
        {"events": 5, "work_ns": 50, "busy_ns": 50, "span_ns": 90}
    ]
    found = health(trace, "device_time_lost")
    assert (found["status"], found["value"]) == ("bad", 3 / 8)
    assert "3 of 8" in found["message"]


def test_annotations_on_the_device_are_no_work(tmp_path: Path) -> None:
    range_ = row("framework", "device_annotation", 0, 500, device="cuda:0", queue="stream 7")
    trace = opened(tmp_path, [kernel(10, 10), range_])
    assert ask(trace, "SELECT events, busy_ns FROM devices") == [{"events": 1, "busy_ns": 10}]


Interval = tuple[int, int]


def union(intervals: list[Interval]) -> int:
    return len({moment for start, length in intervals for moment in range(start, start + length)})


def span(intervals: list[Interval]) -> int:
    return max(s + n for s, n in intervals) - min(s for s, _ in intervals)


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 2)),
            min_size=1,
            max_size=12,
        ),
        min_size=1,
        max_size=25,
    )
)
def test_busy_time_is_the_union_of_the_intervals(
    tmp_path_factory: pytest.TempPathFactory, devices: list[list[tuple[int, int, int]]]
) -> None:
    rows = [
        kernel(start, length, device=f"cuda:{device}", queue=f"stream {queue}")
        for device, units in enumerate(devices)
        for start, length, queue in units
    ]
    trace = opened(tmp_path_factory.mktemp("union"), rows)
    told = {row["device"]: row for row in ask(trace, "SELECT * FROM devices")}
    gaps = ask(trace, "SELECT device, sum(duration_ns)::BIGINT AS ns FROM gaps GROUP BY device")
    idle = {row["device"]: row["ns"] for row in gaps}
    queues = ask(trace, "SELECT device, queue, busy_ns, span_ns FROM queues")
    for device, units in enumerate(devices):
        intervals = [(start, length) for start, length, _ in units]
        found = told[f"cuda:{device}"]
        assert found["work_ns"] == sum(length for _, length in intervals)
        assert found["busy_ns"] == union(intervals) <= found["span_ns"] == span(intervals)
        assert found["idle_ns"] == idle.get(f"cuda:{device}", 0)
    for queue in queues:
        number, stream = int(queue["device"][5:]), int(queue["queue"][7:])
        intervals = [(start, length) for start, length, on in devices[number] if on == stream]
        assert queue["busy_ns"] == union(intervals) <= queue["span_ns"] == span(intervals)


def test_gap_lies_between_the_events_it_names(tmp_path: Path) -> None:
    rows = [kernel(0, 50), kernel(5, 10, queue="stream 8"), kernel(80, 5, step=4)]
    assert ask(opened(tmp_path, rows), "SELECT * FROM gaps") == [
        {
            "rank": 0,
            "device": "cuda:0",
            "start_ns": 50,
            "end_ns": 80,
            "duration_ns": 30,
            "before_event_id": 0,
            "after_event_id": 2,
            "step": 4,
        }
    ]


# ---- CPU-only traces ------------------------------------------------------


def test_without_device_rows_work_is_the_leaf_ops(tmp_path: Path) -> None:
    rows = [
        op(0, 100, name="aten::linear"),
        op(10, 50, name="aten::addmm", input_shapes=[[2, 3]], flops=12),
        op(70, 20, name="aten::t"),
        op(120, 5, name="aten::relu"),
        op(0, 40, name="aten::mul", tid=2),
        row("python", "frame", 0, 200, pid=1, tid=1),
    ]
    trace = opened(tmp_path, rows, {"devices": []})
    found = ask(trace, "SELECT name, device, queue, op_id, flops FROM work ORDER BY event_id")
    assert found == [
        {"name": "aten::addmm", "device": "cpu", "queue": "thread 1", "op_id": 1, "flops": 12},
        {"name": "aten::t", "device": "cpu", "queue": "thread 1", "op_id": 2, "flops": None},
        {"name": "aten::relu", "device": "cpu", "queue": "thread 1", "op_id": 3, "flops": None},
        {"name": "aten::mul", "device": "cpu", "queue": "thread 2", "op_id": 4, "flops": None},
    ]
    assert ask(trace, "SELECT busy_ns, work_ns FROM devices") == [{"busy_ns": 85, "work_ns": 115}]
    assert health(trace, "device_events")["status"] == "ok"


def test_one_rank_with_a_device_does_not_silence_another_without(tmp_path: Path) -> None:
    rows = [op(0, 9, rank=0), kernel(0, 5, rank=0), op(0, 9, rank=1)]
    found = ask(opened(tmp_path, rows), "SELECT rank, device, work_ns FROM devices")
    assert found == [
        {"rank": 0, "device": "cuda:0", "work_ns": 5},
        {"rank": 1, "device": "cpu", "work_ns": 9},
    ]


# ---- launches, ops, steps, lines, modules ---------------------------------


def test_one_graph_launch_has_many_kernels_and_is_one_row(tmp_path: Path) -> None:
    graph = launch(0, 5, kind="graph_launch", name="cudaGraphLaunch", correlation=9)
    kernels = [kernel(100 + i * 10, 10, launch_id=0, correlation=9) for i in range(40)]
    trace = opened(tmp_path, [graph, *kernels])
    found = ask(trace, "SELECT work_count, device_time_ns, delay_ns FROM launches")
    assert found == [{"work_count": 40, "device_time_ns": 400, "delay_ns": 100}]
    assert ask(trace, "SELECT DISTINCT input_shapes FROM work") == [{"input_shapes": None}]
    assert ask(trace, "SELECT idle_ns FROM devices") == [{"idle_ns": 0}]


def test_copy_call_counts_as_a_launch_only_with_work(tmp_path: Path) -> None:
    rows = [
        launch(0, 5, kind="copy", name="cudaMemcpyAsync"),
        launch(10, 5, kind="copy", name="cudaMemcpyAsync"),
        launch(20, 5, kind="call", name="cudaMalloc"),
        launch(30, 5),
        kernel(100, 10, kind="memcpy", launch_id=1),
    ]
    found = ask(opened(tmp_path, rows), "SELECT event_id, work_count FROM launches ORDER BY 1")
    assert found == [{"event_id": 1, "work_count": 1}, {"event_id": 3, "work_count": 0}]


def test_op_has_the_time_of_the_work_it_caused_itself(tmp_path: Path) -> None:
    rows = [
        op(0, 100, name="aten::linear", self_ns=40),
        op(10, 60, name="aten::addmm", self_ns=60, parent_id=0, read_bytes=8, write_bytes=4),
        kernel(200, 10, op_id=1),
        kernel(210, 15, op_id=1),
    ]
    query = "SELECT name, device_time_ns, kernels, self_ns, bytes FROM ops ORDER BY event_id"
    linear, addmm = ask(opened(tmp_path, rows), query)
    assert (linear["device_time_ns"], linear["kernels"]) == (None, 0)
    assert (addmm["device_time_ns"], addmm["kernels"], addmm["bytes"]) == (25, 2, 12)


def test_busy_time_of_a_step_is_that_of_its_window(tmp_path: Path) -> None:
    rows = [
        step(1, 0, 100),
        step(2, 100, 100),
        launch(10, 2, step=1),
        kernel(80, 60, step=1, launch_id=2),
        kernel(90, 10, step=1, queue="stream 8"),
        kernel(190, 30, step=2, device="cuda:1"),
        kernel(195, 3, step=2),
    ]
    query = """
    SELECT step, duration_ns, device_busy_ns, idle_ns, launches, work_events, work_ns FROM steps
    """
    first, second = ask(opened(tmp_path, rows), query)
    assert list(first.values()) == [1, 100, 20, 80, 1, 2, 70]
    assert list(second.values()) == [2, 100, 50, 50, 0, 2, 33]


def test_line_sums_host_and_device_time(tmp_path: Path) -> None:
    at = {"source_file": "model.py", "source_line": 7, "source_function": "forward"}
    rows = [
        op(0, 100, self_ns=30, **at),
        launch(10, 70, self_ns=70, op_id=0, **at),
        kernel(200, 1000, op_id=0, read_bytes=10**6, write_bytes=10**6, **at),
        kernel(1200, 10, op_id=0, **at),
        kernel(2000, 50),
    ]
    found = ask(opened(tmp_path, rows), "SELECT * FROM lines")
    assert found == [
        {
            "rank": 0,
            "source_file": "model.py",
            "source_line": 7,
            "source_function": "forward",
            "module": None,
            "ops": 1,
            "host_ns": 100,
            "work_events": 2,
            "device_ns": 1010,
            "bytes": 2 * 10**6,
            "flops": None,
            "bound": "memory",
        }
    ]


def test_module_sums_host_and_device_time(tmp_path: Path) -> None:
    at = {"module": "layers.3.mlp", "module_class": "MLP"}
    rows = [op(0, 100, self_ns=100, **at), kernel(5, 60, op_id=0, **at), kernel(70, 5)]
    found = ask(opened(tmp_path, rows), "SELECT module_class, ops, host_ns, device_ns FROM modules")
    assert found == [{"module_class": "MLP", "ops": 1, "host_ns": 100, "device_ns": 60}]


def test_kernels_sum_up_by_name(tmp_path: Path) -> None:
    rows = [kernel(0, 30, name="a"), kernel(40, 50, name="a"), kernel(100, 20, name="b")]
    query = "SELECT name, events, total_ns, mean_ns, max_ns, share FROM kernels"
    assert [list(found.values()) for found in ask(opened(tmp_path, rows), query)] == [
        ["a", 2, 80, 40, 50, 0.8],
        ["b", 1, 20, 20, 20, 0.2],
    ]


# ---- collectives, memory, compiler, imports -------------------------------


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"In msg nelems": 10, "Out msg nelems": 80, "dtype": "BFloat16", "Group size": 8}, 160),
        ({"In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float"}, 40),
        ({"In msg nelems": 10, "Out msg nelems": 10, "dtype": "Odd"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_bytes_of_a_collective(tmp_path: Path, attributes: object, expected: int | None) -> None:
    rows = [kernel(0, 5, name="ncclDevKernel_AllGather", attributes=attributes), kernel(9, 1)]
    found = ask(opened(tmp_path, rows), "SELECT bytes, duration_ns FROM collectives")
    assert found == [{"bytes": expected, "duration_ns": 5}]


def test_allocations_and_compilations(tmp_path: Path) -> None:
    rows = [
        row("memory", "alloc", 5, None, alloc_bytes=512, device_allocated=1024, device="cuda:0"),
        row("compiler", "graph_break", 7, 2, reason="data-dependent", graph_id="2/0"),
    ]
    trace = opened(tmp_path, rows)
    assert ask(trace, "SELECT alloc_bytes, device_allocated FROM allocations") == [
        {"alloc_bytes": 512, "device_allocated": 1024}
    ]
    assert ask(trace, "SELECT kind, graph_id, reason FROM compilations") == [
        {"kind": "graph_break", "graph_id": "2/0", "reason": "data-dependent"}
    ]


def test_import_issues_come_from_the_metadata(tmp_path: Path) -> None:
    issue = {
        "kind": "bad_escape",
        "count": 3,
        "first_position": 17,
        "example": "\\p",
        "action": "x",
    }
    trace = opened(tmp_path, [kernel(0, 1)], {"import_issues": [issue]})
    found = ask(trace, "SELECT kind, count, first_position, example, action FROM import_issues")
    assert found == [issue]


# ---- syncs ----------------------------------------------------------------


def test_each_wait_counts_once_with_its_cause(tmp_path: Path) -> None:
    rows = [
        op(0, 100, name="aten::item"),
        op(5, 90, name="aten::_local_scalar_dense", parent_id=0),
        launch(10, 5, kind="copy", name="cudaMemcpyAsync", op_id=1, parent_id=1),
        launch(20, 70, kind="sync", name="cudaStreamSynchronize", op_id=1, parent_id=1),
        launch(200, 30, kind="sync", name="cudaDeviceSynchronize"),
        launch(205, 20, kind="sync", name="cuCtxSynchronize", parent_id=4),
        launch(300, 5, kind="sync", name="cudaStreamWaitEvent"),
        launch(400, 9, kind="copy", name="hipMemcpyWithStream", op_id=8),
        op(390, 30, name="aten::copy_"),
        row("host", "sync", 20, 70, name="Stream Sync"),
        kernel(15, 70),
    ]
    found = ask(opened(tmp_path, rows), "SELECT name, cause, wait_ns, op_name, via FROM syncs")
    assert [list(sync.values()) for sync in found] == [
        ["cudaStreamSynchronize", "scalar_read", 70, "aten::_local_scalar_dense", "runtime"],
        ["cudaDeviceSynchronize", "explicit", 30, None, "runtime"],
        ["hipMemcpyWithStream", "host_copy", 9, "aten::copy_", "runtime"],
    ]


def test_ops_that_wait_stand_in_where_no_runtime_call_was_recorded(tmp_path: Path) -> None:
    waits = [op(0, 90, name="aten::item"), op(5, 80, name="aten::_local_scalar_dense")]
    found = ask(opened(tmp_path, [*waits, kernel(0, 9)]), "SELECT name, via, wait_ns FROM syncs")
    assert found == [{"name": "aten::_local_scalar_dense", "via": "framework", "wait_ns": 80}]
    (tmp_path / "cpu").mkdir()
    found = ask(opened(tmp_path / "cpu", waits), "SELECT name, via, wait_ns FROM syncs")
    assert found == [{"name": "aten::_local_scalar_dense", "via": "cpu", "wait_ns": 0}]
