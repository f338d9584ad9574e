"""What a step is bound by, and what of each unit of work nothing else covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import Row, kernel, launch, op, row, step, write_trace
from neuron_explorer.trace import Trace

US = 1_000


def ask(folder: Path, rows: list[Row], query: str) -> list[dict[str, Any]]:
    with Trace.open([write_trace(folder / "t.parquet", rows)]) as trace:
        found: list[dict[str, Any]] = trace.sql(query).to_pylist()
        return found


def launched(host_us: int, start_us: int, us: int, at: int, **columns: object) -> list[Row]:
    """A launch and its kernel; `at` is the position of the first of the two rows."""
    return [
        launch(host_us * US, 2 * US, step=columns.get("step")),
        kernel(start_us * US, us * US, launch_id=at, **columns),
    ]


def sync(start_us: int, us: int) -> Row:
    return launch(start_us * US, us * US, kind="sync", name="cudaDeviceSynchronize")


def paces(folder: Path, rows: list[Row]) -> list[str]:
    found = ask(folder, rows, "SELECT pace FROM work_pace ORDER BY event_id")
    return [one["pace"] for one in found]


def test_work_queued_behind_other_work_sets_the_pace(tmp_path: Path) -> None:
    rows = [*launched(0, 5, 100, 0), *launched(10, 105, 100, 2), sync(20, 190)]
    assert paces(tmp_path, rows) == ["device", "device"]


def test_work_before_a_late_launch_hides_behind_the_host(tmp_path: Path) -> None:
    rows = [*launched(0, 5, 20, 0), *launched(100, 105, 20, 2), *launched(200, 205, 20, 4)]
    assert paces(tmp_path, rows) == ["host", "host", "device"]


def test_a_launch_that_is_late_because_the_host_waited_is_the_devices_fault(
    tmp_path: Path,
) -> None:
    rows = [*launched(0, 5, 100, 0), sync(10, 98), *launched(115, 120, 20, 3)]
    assert paces(tmp_path, rows) == ["device", "device"]


def test_without_launches_the_pace_is_unknown(tmp_path: Path) -> None:
    assert paces(tmp_path, [kernel(0, 100)]) == ["unknown"]


def test_ops_of_a_rank_without_a_device_are_the_program(tmp_path: Path) -> None:
    rows = [step(0, 0, 100), op(10, 40, name="aten::mm", family="matmul", step=0)]
    assert paces(tmp_path, rows) == ["device"]
    (bound,) = ask(tmp_path, rows, "SELECT * FROM step_bounds")
    assert (bound["bound"], bound["critical_device"], bound["critical_queue"]) == (
        "device",
        "cpu",
        "thread 1",
    )
    assert (bound["device_busy_ns"], bound["idle_ns"], bound["wait_ns"]) == (40, 60, 0)


def test_each_step_has_its_bound_and_its_numbers(tmp_path: Path) -> None:
    rows = [
        step(0, 0, 200 * US),
        *launched(0, 5, 90, 1, step=0),
        *launched(10, 95, 100, 3, step=0),
        sync(20, 176),
        step(1, 200 * US, 200 * US),
        *launched(210, 215, 5, 7, step=1),
        *launched(300, 305, 5, 9, step=1),
        *launched(390, 395, 1, 11, step=1),
    ]
    first, second = ask(tmp_path, rows, "SELECT * FROM step_bounds ORDER BY step")
    assert (first["bound"], first["paced_ns"], first["work_ns"]) == ("device", 190 * US, 190 * US)
    assert (first["device_busy_ns"], first["idle_ns"]) == (190 * US, 10 * US)
    assert (first["wait_ns"], first["host_busy_ns"]) == (176 * US, 24 * US)
    assert (second["bound"], second["paced_ns"], second["work_ns"]) == ("host", 1 * US, 11 * US)


def test_a_trace_without_steps_is_one_row(tmp_path: Path) -> None:
    rows = [*launched(0, 5, 90, 0), sync(10, 90)]
    (bound,) = ask(tmp_path, rows, "SELECT step, duration_ns, bound FROM step_bounds")
    assert bound == {"step": None, "duration_ns": 100 * US, "bound": "device"}


def test_waits_of_two_threads_at_once_are_one(tmp_path: Path) -> None:
    other = launch(20 * US, 60 * US, kind="sync", name="cudaDeviceSynchronize", tid=2)
    rows = [*launched(0, 5, 90, 0), sync(10, 90), other]
    (bound,) = ask(tmp_path, rows, "SELECT wait_ns FROM step_bounds")
    assert bound["wait_ns"] == 90 * US


def test_work_that_outlasts_the_steps_is_what_savings_are_a_part_of(tmp_path: Path) -> None:
    rows = [step(0, 0, 50), launch(1, 2, step=0), kernel(10, 300, launch_id=1, step=0)]
    (span,) = ask(tmp_path, rows, "SELECT steps, span_ns FROM rank_spans")
    assert span == {"steps": 1, "span_ns": 300}


def test_a_collective_is_exposed_where_no_kernel_runs(tmp_path: Path) -> None:
    rows = [
        kernel(0, 100),
        kernel(50, 100, kind="collective", queue="stream 9", name="ncclDevKernel"),
        kernel(60, 120, kind="memcpy", queue="stream 8", name="Memcpy HtoD"),
    ]
    found = ask(tmp_path, rows, "SELECT class, alone_ns, exposed_ns FROM exposed ORDER BY event_id")
    assert [tuple(one.values()) for one in found] == [
        ("compute", 50, 100),
        ("communication", 0, 50),
        ("copy", 30, 80),
    ]


def test_what_a_loader_reads_from_another_one_counts_once(tmp_path: Path) -> None:
    rows = [
        step(0, 0, 100),
        row("host", "input_wait", 10, 40, name="outer", pid=1, tid=1),
        row("host", "input_wait", 20, 10, name="inner", pid=1, tid=1),
        kernel(0, 30, step=0),
    ]
    found = ask(tmp_path, rows, "SELECT name, stop_ns, idle_ns FROM host_stops")
    assert found == [{"name": "outer", "stop_ns": 40, "idle_ns": 20}]


INTERVALS = st.lists(
    st.tuples(
        st.integers(0, 60), st.integers(0, 30), st.sampled_from(["kernel", "memcpy", "collective"])
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(INTERVALS, min_size=8, max_size=8))
def test_exposed_time_is_what_a_count_of_every_ns_gives(
    tmp_path: Path, ranks: list[list[tuple[int, int, str]]]
) -> None:
    rows = [
        kernel(start, ns, kind=kind, queue=f"stream {place}", name=kind, rank=rank)
        for rank, intervals in enumerate(ranks)
        for place, (start, ns, kind) in enumerate(intervals)
    ]
    found = ask(tmp_path, rows, "SELECT alone_ns, exposed_ns FROM exposed ORDER BY event_id")
    counted = [counts(intervals, place) for intervals in ranks for place in range(len(intervals))]
    assert [tuple(one.values()) for one in found] == counted


def counts(intervals: list[tuple[int, int, str]], place: int) -> tuple[int, int]:
    """Nanoseconds of one interval in which it is alone, and exposed, by looking at each."""
    start, ns, kind = intervals[place]
    alone = exposed = 0
    for at in range(start, start + ns):
        running = [n for n, (begin, long, _) in enumerate(intervals) if begin <= at < begin + long]
        same = [n for n in running if intervals[n][2] == kind]
        first = min(same, key=lambda n: (intervals[n][0], -intervals[n][1], n)) == place
        computing = any(intervals[n][2] == "kernel" for n in running)
        alone += running == [place]
        exposed += first and (kind == "kernel" or not computing)
    return alone, exposed


@pytest.mark.parametrize("name", ["aten::mul", "aten::sum"])
def test_an_op_that_casts_or_clears_inside_is_the_unit_itself(tmp_path: Path, name: str) -> None:
    rows = [
        op(0, 100, name=name, family="elementwise", read_bytes=8, write_bytes=4),
        op(5, 20, name="aten::to", family="cast", parent_id=0),
        op(6, 10, name="aten::copy_", family="copy", parent_id=1),
        op(30, 2, name="aten::result_type", family="elementwise", read_bytes=0, write_bytes=0),
        op(200, 50, name="aten::to", family="cast"),
        op(210, 20, name="aten::copy_", family="copy", parent_id=4),
    ]
    found = ask(tmp_path, rows, "SELECT name, duration_ns FROM work ORDER BY start_ns")
    assert [tuple(one.values()) for one in found] == [(name, 100), ("aten::copy_", 20)]
