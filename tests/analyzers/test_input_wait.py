"""What recording lines costs is no part of the sure saving."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import Row, op, row, step
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

MS = 1_000_000


@pytest.mark.parametrize(("marks", "low_ms"), [(0, 6), (4_000, 3), (20_000, 0)])
def test_recorded_lines_lower_the_low_saving(
    marks: int, low_ms: int, open_trace: Callable[..., Trace]
) -> None:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    rows = [step(number, number * 10 * MS, 10 * MS) for number in range(2)]
    rows += [
        row("host", "input_wait", number * 10 * MS, 4 * MS, name=name, step=number, pid=1, tid=1)
        for number in range(2)
    ]
    trace = open_trace(rows, metadata={"capture": {"lines": {"marks": marks}}})
    (found,) = run(trace, only=["input_wait"]).findings
    # 8 ms of reads, less a microsecond a mark; then three quarters, as CPU times stray
    assert found.saving_low_ns == low_ms * MS
    assert found.evidence["recorder_ns"] == min(marks * 1_000, 8 * MS)


def test_the_recorder_slows_the_steps_that_the_wait_is_a_part_of(
    open_trace: Callable[..., Trace],
) -> None:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    rows: list[Row] = []
    for number in range(2):
        begin = number * 10 * MS
        rows.append(step(number, begin, 10 * MS))
        rows.append(row("host", "input_wait", begin, 4 * MS, name=name, step=number, pid=1, tid=1))
        for view in range(200):
            at = begin + 5 * MS + view * 10_000
            rows.append(op(at, 5_000, step=number, family="view", self_ns=3_000))
            rows.append(op(at + 1, 2_000, step=number, family="view", parent_id=len(rows) - 1))
    (found,) = run(open_trace(rows), only=["input_wait"]).findings
    # 800 ops at twice 3 us: of 20 ms, 15.2 are the program's, and the reads hold none of the ops
    assert found.evidence["unrecorded_ns"] == found.saving_high_ns == round(20 * MS * 8 / 15.2)
