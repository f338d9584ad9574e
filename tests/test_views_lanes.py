"""tracks, lanes and spans: what a timeline draws, and where."""

from __future__ import annotations

from pathlib import Path

from builders import kernel, launch, op, row, step, write_trace
from neuron_explorer.trace import Trace


def test_queues_come_before_threads_and_each_sort_of_event_has_a_lane(tmp_path: Path) -> None:
    rows = [
        step(1, 0, 100),
        op(0, 50),
        launch(5, 10, op_id=1),
        kernel(50, 100, op_id=1, launch_id=2),
        kernel(60, 10, queue="stream 9"),
        kernel(80, 10, queue="stream 9"),
        row("python", "frame", 0, 90, name="model.py(1): f", pid=1, tid=1),
        row("host", "gc", 1, 2, name="gc", pid=1, tid=2),
        row("framework", "module", 0, 40, name="layer", pid=1, tid=1),
        row("compiler", "compile", 3, 4, name="f", pid=1, tid=1),
    ]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        lanes = trace.sql("SELECT lane, place, track, events FROM lanes").to_pylist()
        spans = trace.sql("SELECT event_id, lane, mark FROM spans ORDER BY event_id").to_pylist()
    assert [(lane["place"], lane["track"], lane["events"]) for lane in lanes] == [
        ("stream 9", "work", 2),
        ("stream 7", "work", 1),
        ("thread 1", "marks", 1),
        ("thread 1", "ops", 1),
        ("thread 1", "runtime", 1),
        ("thread 1", "compile", 1),
        ("thread 1", "modules", 1),
        ("thread 1", "frames", 1),
        ("thread 2", "host", 1),
    ]
    assert [lane["lane"] for lane in lanes] == list(range(1, 10))
    assert [span["event_id"] for span in spans] == list(range(10))
    assert [span["mark"] for span in spans[:4]] == ["annotation", "op", "launch", "unknown"]


def test_moments_and_meta_rows_are_in_no_lane(tmp_path: Path) -> None:
    rows = [
        kernel(0, None),
        kernel(None, 5),
        kernel(0, 0),
        row("memory", "alloc", 3, None, name="[memory]", pid=1, tid=1),
        row("meta", "flow_start", 3, 1, name="ac2g", pid=1, tid=1),
    ]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        assert trace.sql("SELECT * FROM spans").num_rows == 0
        assert trace.sql("SELECT * FROM lanes").num_rows == 0


def test_each_rank_has_lanes_of_its_own(tmp_path: Path) -> None:
    rows = [kernel(0, 5, rank=0), kernel(0, 5, rank=1)]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        lanes = trace.sql("SELECT rank, lane FROM lanes").to_pylist()
    assert lanes == [{"rank": 0, "lane": 1}, {"rank": 1, "lane": 2}]
