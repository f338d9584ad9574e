"""The view `backward_nodes`: what autograd ran, and for which op of the forward."""

from __future__ import annotations

from pathlib import Path

from builders import op, row, write_trace
from neuron_explorer.trace import Trace

NODE = "autograd::engine::evaluate_function: MulBackward0"


def test_a_node_has_its_forward_and_the_gap_before_it(tmp_path: Path) -> None:
    rows = [
        op(10, 5, name="aten::mul", source_file="model.py", source_line=7),
        row("framework", "autograd", 100, 20, name=NODE, forward_id=0),
        row("framework", "autograd", 130, 20, name=NODE),
        row("framework", "autograd", 130, 20, name=NODE, forward_id=0, tid=9),
        row("framework", "autograd", 105, 5, name="MulBackward0", forward_id=0),
    ]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        found = trace.answer(
            "SELECT event_id, forward_line, forward_start_ns, duration_ns, gap_ns"
            " FROM backward_nodes ORDER BY event_id"
        )
    assert found.rows == [(1, 7, 10, 20, 0), (2, None, None, 20, 10), (3, 7, 10, 20, 0)]
