"""What recording lines costs is no part of the sure saving."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import row, step
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
