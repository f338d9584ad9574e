"""Pauses of the garbage collector: where, how long, and never more than is allowed."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import neuron_explorer  # noqa: E402
from neuron_explorer.collectors.capture.clock import Alignment  # noqa: E402
from neuron_explorer.collectors.capture.collector_pauses import CollectorPauses  # noqa: E402

pytestmark = pytest.mark.torch
AS_IT_IS = Alignment((0,), (0,), 0)


def line_of(mark: str) -> int:
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(text, 1) if line.endswith(f"# line: {mark}"))


def leave_garbage(count: int) -> None:
    for _ in range(count):
        itself: list[object] = []
        itself.append(itself)


def test_a_pause_says_when_where_and_what_it_found() -> None:
    pauses = CollectorPauses()
    gc.collect()
    gc.disable()
    try:
        pauses.start()
        leave_garbage(10)
        before = time.time_ns()
        gc.collect()
        after = time.time_ns()
        pauses.stop()
    finally:
        gc.enable()
    gc.collect()
    (row,) = pauses.rows(AS_IT_IS).to_pylist()
    assert before <= row["start_ns"] < row["start_ns"] + row["duration_ns"] <= after
    assert (row["role"], row["name"]) == ("host/gc", "gc generation 2")
    assert row["tid"] == threading.get_native_id()
    said = json.loads(row["attributes"])
    assert said["collected"] >= 10
    assert (said["generation"], said["uncollectable"]) == (2, 0)
    assert pauses.rows(AS_IT_IS).num_rows == 0


def test_pauses_beyond_the_limit_are_counted() -> None:
    pauses = CollectorPauses(limit=2)
    pauses.start()
    for _ in range(5):
        gc.collect(0)
    pauses.stop()
    assert pauses.rows(AS_IT_IS).num_rows == 2
    ((kind, _, missed),) = pauses.remarks()
    assert kind == "gc_pauses_dropped"
    assert missed >= 3


def test_nothing_stays_behind() -> None:
    before = list(gc.callbacks)
    pauses = CollectorPauses()
    pauses.stop()
    for _ in range(2):
        pauses.start()
        pauses.start()
        assert len(gc.callbacks) == len(before) + 1
        pauses.stop()
        assert gc.callbacks == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_records_nothing() -> None:
    before = len(gc.callbacks)
    pauses = CollectorPauses()
    pauses.start()
    child = os.fork()
    if not child:
        os._exit(len(gc.callbacks) - before)
    _, status = os.waitpid(child, 0)
    recorded = len(gc.callbacks) - before
    pauses.stop()
    assert (os.waitstatus_to_exitcode(status), recorded) == (0, 1)


def test_in_a_trace_it_lies_on_its_line(tmp_path: Path) -> None:
    with neuron_explorer.profile(output=tmp_path / "t.parquet") as session:
        torch.ones(2)
        gc.collect()  # line: collect
        torch.ones(2)
    (row,) = session.trace.sql(
        "FROM events WHERE kind = 'gc' AND name = 'gc generation 2'"
    ).to_pylist()
    assert (row["source_line"], row["source_via"]) == (line_of("collect"), "line")
    assert row["self_ns"] == row["duration_ns"]
    ops = session.trace.sql("SELECT start_ns, end_ns FROM ops WHERE name = 'aten::ones'")
    (_, first_end), (second_start, _) = sorted(tuple(o.values()) for o in ops.to_pylist())
    assert first_end <= row["start_ns"]
    assert row["start_ns"] + row["duration_ns"] <= second_start
