"""The view `step_lines`, and the annotations of a step."""

from __future__ import annotations

from pathlib import Path

from builders import launch, op, row, step, write_trace
from neuron_explorer.trace import Trace

HERE = {"source_file": "train.py", "source_line": 7}


def test_host_time_of_a_line_in_each_step_counts_once(tmp_path: Path) -> None:
    rows = [
        step(1, 0, 100),
        op(10, 50, name="aten::linear", self_ns=20, step=1, **HERE),
        op(20, 30, name="aten::addmm", self_ns=25, step=1, **HERE),
        launch(25, 5, step=1, **HERE),
        step(2, 100, 100),
        op(110, 40, name="aten::linear", step=2, **HERE),
        # neither an op nor a wait, outside any step, without a line
        row("framework", "annotation", 120, 9, name="mine", step=2, **HERE),
        op(300, 40, **HERE),
        op(160, 40, step=2),
    ]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        found = trace.answer("SELECT step, source_line, name, host_ns FROM step_lines ORDER BY 1")
    assert found.rows == [(1, 7, "aten::addmm", 50), (2, 7, "aten::linear", 40)]


def test_a_step_names_its_annotations(tmp_path: Path) -> None:
    other_thread = dict(step(1, 5, 90)) | {"tid": 2}
    rows = [step(1, 0, 100), other_thread, step(2, 100, 100)]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        assert trace.answer("SELECT step, event_ids FROM steps").rows == [(1, [0, 1]), (2, [2])]
