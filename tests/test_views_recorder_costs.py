"""The view `recorder_costs`: what recording an op costs, seen at ops that only call another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from builders import Row, op, row, step, write_trace
from neuron_explorer.trace import Trace

QUERY = "SELECT op_ns, ops, events, opened_ns FROM recorder_costs"


def transposes(count: int, begin_ns: int, **columns: object) -> Iterator[Row]:
    """`t` around `transpose`, which takes all but 3 us of it; two events each."""
    for number in range(count):
        start = begin_ns + number * 10_000
        view = {"family": "view", **columns}
        yield op(start, 5_000, name="aten::t", self_ns=3_000, **view)
        yield op(start + 1, 2_000, name="aten::transpose", parent_id=2 * number + 1, **view)


def test_what_an_op_costs_that_only_calls_another(tmp_path: Path) -> None:
    rows = [
        step(0, 1_000, 1_000_000),
        *transposes(16, 201_000, step=0),
        row("framework", "autograd", 900_000, 50, name="MulBackward0", step=0),
        op(2_000_000, 5, name="aten::mul"),  # behind the only step
    ]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        assert trace.answer(QUERY).rows == [(3_000, 16, 33, 200_000)]


def test_a_few_ops_tell_nothing(tmp_path: Path) -> None:
    rows = [op(0, 5), *transposes(3, 0)]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        assert trace.answer(QUERY).rows == [(None, 3, 7, 0)]
