"""`host_times`: with the Python in between, what the host does makes up its steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from builders import Row, launch, op, row, step, write_trace
from neuron_explorer.trace import Trace


def times(path: Path, rows: Sequence[Row]) -> list[tuple[str, int | None, int]]:
    """Name, own time and time of the Python before it."""
    with Trace.open([write_trace(path / "t.parquet", rows)]) as trace:
        found = trace.sql("SELECT name, self_ns, python_ns FROM host_times ORDER BY event_id")
    return [(each["name"], each["self_ns"], each["python_ns"]) for each in found.to_pylist()]


def test_python_counts_at_the_op_that_it_prepared(tmp_path: Path) -> None:
    rows = [
        step(0, 0, 1000),
        op(100, 200, name="outer", self_ns=150, step=0),
        op(120, 50, name="inner", self_ns=50, step=0),
        op(700, 100, name="late", self_ns=100, step=0),
    ]
    assert times(tmp_path, rows) == [("outer", 150, 100), ("inner", 50, 0), ("late", 100, 400)]


def test_what_runs_on_another_thread_is_no_python(tmp_path: Path) -> None:
    rows = [
        step(0, 0, 1000),
        op(0, 100, name="a", self_ns=100, step=0),
        op(50, 500, name="worker", self_ns=500, step=0, tid=2),
        op(600, 100, name="b", self_ns=100, step=0),
    ]
    assert times(tmp_path, rows) == [("a", 100, 0), ("worker", 500, 0), ("b", 100, 50)]


def test_the_time_between_two_steps_is_nobodys(tmp_path: Path) -> None:
    rows = [
        step(0, 0, 100),
        op(0, 100, name="a", self_ns=100, step=0),
        step(1, 5000, 200),
        op(5020, 100, name="b", self_ns=100, step=1),
    ]
    assert times(tmp_path, rows) == [("a", 100, 0), ("b", 100, 20)]


def test_compilations_are_left_out_and_are_no_python(tmp_path: Path) -> None:
    rows = [
        step(0, 0, 1000),
        row("compiler", "compile", 0, 600, name="forward", step=0),
        op(10, 20, name="fake", self_ns=20, step=0, phase="compile"),
        op(610, 100, name="a", self_ns=100, step=0),
    ]
    assert times(tmp_path, rows) == [("a", 100, 10)]


def test_waits_pauses_and_runtime_calls_count_with_their_own_time(tmp_path: Path) -> None:
    rows = [
        step(0, 0, 1000),
        row("host", "gc", 0, 100, name="gc", self_ns=100, step=0),
        row("host", "input_wait", 100, 200, name="loader", self_ns=200, step=0),
        launch(300, 50, name="sync", kind="sync", self_ns=50, step=0),
        row("python", "frame", 350, 500, name="frame", step=0),
        op(900, 100, name="a", self_ns=100, step=0),
    ]
    found = times(tmp_path, rows)
    assert found == [("gc", 100, 0), ("loader", 200, 0), ("sync", 50, 0), ("a", 100, 550)]
    assert sum((own or 0) + python for _, own, python in found) == 1000


def test_a_real_step_is_its_parts(traces: Path, tmp_path: Path) -> None:
    from neuron_explorer.collectors.importers import import_file  # noqa: PLC0415 - slow to load

    output = tmp_path / "t.parquet"
    import_file(traces / "kineto" / "cpu-only-rank34of300.json.gz", output)
    with Trace.open([output]) as trace:
        (found,) = trace.sql(
            """
            SELECT sum(h.self_ns + h.python_ns) / sum(DISTINCT s.duration_ns) AS share
            FROM steps AS s
            INNER JOIN host_times AS h ON s.rank = h.rank AND s.step = h.step
            """
        ).to_pylist()
    if found["share"] is None:
        pytest.skip("this trace marks no steps")
    assert 0.5 < found["share"] < 1.5
