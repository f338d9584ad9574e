"""Views of what happens around the ops: input waits, memory, collectives, fallbacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builders import Row, kernel, op, row, step, write_trace
from neuron_explorer.trace import Trace


def ask(folder: Path, rows: list[Row], query: str, **metadata: object) -> list[dict[str, Any]]:
    with Trace.open([write_trace(folder / "t.parquet", rows, metadata)]) as trace:
        found: list[dict[str, Any]] = trace.sql(query).to_pylist()
        return found


# ---- input waits ----------------------------------------------------------


def wait(start: int, duration: int, name: str = "enumerate(DataLoader)#_It.__next__") -> Row:
    return row("host", "input_wait", start, duration, name=name, pid=1, tid=1)


def input_waits(folder: Path, rows: list[Row]) -> list[int | None]:
    found = ask(folder, rows, "SELECT input_wait_ns FROM steps ORDER BY step")
    return [one["input_wait_ns"] for one in found]


def test_a_step_waits_for_the_union_of_its_waits(tmp_path: Path) -> None:
    inner = wait(12, 6, "enumerate(DataPipe)#Shuffler")
    rows = [step(0, 0, 100), step(1, 100, 100), wait(10, 20), inner, wait(25, 10), wait(95, 15)]
    assert input_waits(tmp_path, rows) == [25 + 5, 10]


def test_a_step_without_a_wait_waited_for_nothing_where_others_did(tmp_path: Path) -> None:
    assert input_waits(tmp_path, [step(0, 0, 10), step(1, 10, 10), wait(2, 3)]) == [3, 0]


def test_without_any_wait_nothing_is_known_of_the_input(tmp_path: Path) -> None:
    assert input_waits(tmp_path, [step(0, 0, 10), op(2, 3)]) == [None]


# ---- memory ---------------------------------------------------------------


def memory(start: int, size: int, device: str = "cpu", **more: object) -> Row:
    kind = "alloc" if size > 0 else "free"
    return row("memory", kind, start, None, alloc_bytes=size, device=device, **more)


def test_live_bytes_without_a_total_are_a_sum_from_the_beginning(tmp_path: Path) -> None:
    rows = [memory(0, 100), memory(1, 50), memory(2, -100), memory(3, 10)]
    found = ask(tmp_path, rows, "SELECT live_bytes, live_is_relative, peak_bytes FROM allocations")
    assert [tuple(one.values()) for one in found] == [
        (100, True, 100),
        (150, True, 150),
        (50, True, 150),
        (60, True, 150),
    ]


def test_live_bytes_of_a_device_are_what_its_allocator_says(tmp_path: Path) -> None:
    rows = [
        memory(0, 100, "cuda:0", device_allocated=1100, device_reserved=4096),
        memory(1, 7),
        memory(2, -100, "cuda:0", device_allocated=1000, device_reserved=4096),
    ]
    query = """
        SELECT device, max(live_bytes) AS peak, bool_or(live_is_relative) AS relative
        FROM allocations GROUP BY device ORDER BY device
    """
    assert ask(tmp_path, rows, query) == [
        {"device": "cpu", "peak": 7, "relative": True},
        {"device": "cuda:0", "peak": 1100, "relative": False},
    ]


# ---- collectives ----------------------------------------------------------


def gloo(start: int, **columns: object) -> Row:
    given: dict[str, object] = {"name": "gloo:all_reduce", "pid": 1, "tid": 9}
    given |= {"input_shapes": [[4]], "input_dtypes": ["float"]}
    return row("host", "collective", start, 5, **(given | columns))


def environment(*groups: dict[str, object]) -> dict[str, object]:
    return {"distributedInfo": {"backend": "gloo", "pg_config": list(groups)}}


def test_a_collective_of_host_threads_has_size_group_and_op(tmp_path: Path) -> None:
    asks = op(0, 3, name="c10d::allreduce_", read_bytes=16, write_bytes=16)
    gathers = op(10, 3, name="c10d::allgather_", read_bytes=16, write_bytes=16)
    rows = [asks, gloo(1, op_id=0, link_via="order"), gathers, gloo(11, op_id=2)]
    found = ask(
        tmp_path,
        rows,
        "SELECT device, queue, collective, bytes, dtype, group_size, group_name, sequence,"
        " op_name, link_via FROM collectives",
        environment=environment({"pg_name": "0", "pg_size": 2}),
    )
    first = {"device": "cpu", "queue": "thread 9", "collective": "all_reduce", "bytes": 16}
    first |= {"dtype": "float", "group_size": 2, "group_name": "0", "sequence": None}
    assert found[0] == first | {"op_name": "c10d::allreduce_", "link_via": "order"}
    assert found[1]["bytes"] == 32


def test_with_several_groups_that_of_a_host_collective_is_unknown(tmp_path: Path) -> None:
    groups = environment({"pg_name": "0", "pg_size": 4}, {"pg_name": "1", "pg_size": 2})
    (found,) = ask(tmp_path, [gloo(0)], "FROM collectives", environment=groups)
    assert (found["group_name"], found["group_size"], found["bytes"]) == (None, None, 16)


def test_bytes_of_a_host_collective_without_an_op(tmp_path: Path) -> None:
    rows = [
        gloo(0, input_shapes=[[]], input_dtypes=["double"]),
        gloo(1, input_shapes=[[2, 3], [4]], input_dtypes=["c10::BFloat16", "c10::BFloat16"]),
        gloo(2, name="gloo:all_gather"),
        gloo(3, input_shapes=None, input_dtypes=None),
    ]
    found = ask(tmp_path, rows, "SELECT bytes FROM collectives ORDER BY start_ns")
    # what comes out of an all_gather is more than what goes in
    assert [one["bytes"] for one in found] == [8, 20, None, None]


def test_a_host_collective_takes_no_work_away_from_the_ops(tmp_path: Path) -> None:
    found = ask(tmp_path, [op(0, 3), gloo(1)], "SELECT name FROM work")
    assert found == [{"name": "aten::op"}]


def test_a_kernel_of_nccl_keeps_its_sequence(tmp_path: Path) -> None:
    said = {"Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8}
    said |= {"dtype": "BFloat16", "Group size": 4, "Process Group Name": "tp", "Seq": 17}
    rows = [kernel(0, 5, kind="collective", name="ncclDevKernel", attributes=said)]
    (found,) = ask(tmp_path, rows, "FROM collectives")
    assert (found["bytes"], found["group_size"], found["group_name"]) == (16, 4, "tp")
    assert (found["sequence"], found["device"]) == (17, "cuda:0")


# ---- fallbacks ------------------------------------------------------------


def fallen(device: str) -> list[Row]:
    """torch's own fallback of one op, a neuron-like one of another, and the user's own copy."""
    here: dict[str, object] = {"source_file": "/m.py", "source_line": 7}
    copied: dict[str, object] = {"name": "aten::copy_", "read_bytes": 64, "write_bytes": 64}
    return [
        memory(0, 8, device),
        op(10, 100, name="aten::isin", **here),
        op(12, 20, name="aten::_to_cpu", parent_id=1),
        op(14, 10, parent_id=2, **copied),
        op(80, 10, parent_id=1, **copied),
        op(200, 100, name="aten::kthvalue", source_file="/m.py", source_line=8),
        op(205, 30, name="aten::to", parent_id=5),
        op(206, 25, name="aten::_to_copy", parent_id=6),
        op(207, 20, parent_id=7, **copied),
        row("runtime", "copy", 210, 5, name="dmem_buf_copyout", pid=1, tid=1),
        op(400, 30, name="aten::to"),
        op(401, 25, name="aten::_to_copy", parent_id=10),
        row("runtime", "copy", 405, 5, name="dmem_buf_copyout", pid=1, tid=1),
        op(500, 10, name="aten::add"),
    ]


def test_fallbacks_of_a_private_device_are_found_both_ways(tmp_path: Path) -> None:
    for device in ("privateuseone:0", "neuron:0"):
        found = ask(tmp_path, fallen(device), "FROM fallbacks ORDER BY first_event_id")
        assert found == [
            {
                "rank": 0,
                "op_name": "aten::isin",
                "source_file": "/m.py",
                "source_line": 7,
                "count": 1,
                "device": device,
                "duration_ns": 100,
                "copied_bytes": 128,
                "recognised_by": "to_cpu",
                "first_event_id": 1,
            },
            {
                "rank": 0,
                "op_name": "aten::kthvalue",
                "source_file": "/m.py",
                "source_line": 8,
                "count": 1,
                "device": device,
                "duration_ns": 100,
                "copied_bytes": 64,
                "recognised_by": "copyout",
                "first_event_id": 5,
            },
        ]


def test_a_fallback_that_its_device_marks_counts_once(tmp_path: Path) -> None:
    marked = row(
        "host",
        "slice",
        11,
        98,
        name="aten::isin executed via CPU fallback",
        pid=1,
        tid=1,
        source_file="/m.py",
        source_line=7,
        attributes={"copied_bytes": 64},
    )
    found = ask(tmp_path, [*fallen("neuron:0"), marked], "FROM fallbacks ORDER BY op_name")
    seen = [(r["op_name"], r["recognised_by"], r["count"], r["copied_bytes"]) for r in found]
    assert seen == [("aten::isin", "marked", 1, 64), ("aten::kthvalue", "copyout", 1, 64)]


def test_other_devices_have_no_fallbacks(tmp_path: Path) -> None:
    assert ask(tmp_path, fallen("cuda:0"), "FROM fallbacks") == []
