"""A slow beginning: the program's warm-up from step 0 on, later only a slow step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import kernel, step
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

MS = 1_000_000


@pytest.mark.parametrize(("first", "analyzer"), [(0, "warm_up_counted"), (2, "outlier_steps")])
def test_only_the_programs_first_steps_warm_it_up(
    first: int, analyzer: str, open_trace: Callable[..., Trace]
) -> None:
    """As seen on a busy machine: 39 ms, then five steps of 19, recorded from step 2 on."""
    times = [39, 19, 19, 19, 19, 19]
    starts = [sum(times[:n]) * MS for n in range(len(times))]
    rows = [
        row
        for n, (begin, took) in enumerate(zip(starts, times, strict=True), first)
        for row in (step(n, begin, took * MS), kernel(begin, (took - 1) * MS, step=n))
    ]
    report = run(open_trace(rows), only=["warm_up_counted", "outlier_steps"])
    assert [(f.analyzer, f.evidence["slow_steps"]) for f in report.findings] == [(analyzer, 1)]
