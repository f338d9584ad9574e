"""Python between ops: from the begin of a step on."""

from __future__ import annotations

from collections.abc import Callable

from builders import op, step
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

MS = 1_000_000


def test_the_first_stretch_begins_with_its_step(open_trace: Callable[..., Trace]) -> None:
    rows = []
    for number in range(4):
        begin = number * 10 * MS
        rows += [step(number, begin, 10 * MS), op(begin + 6 * MS, 2 * MS, step=number)]
    (found,) = run(open_trace(rows), only=["python_overhead"]).findings
    # 6 ms of each step before its op; the 2 ms after it are the next step's no more than this one's
    assert found.evidence["gaps"] == 4
    assert found.saving_high_ns == 24 * MS
