"""Savings as parts of the steps that the program has when nobody records them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import Row, op, row, step
from neuron_explorer.analyzers import run
from neuron_explorer.analyzers.found import Found
from neuron_explorer.analyzers.savings import of_the_step
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

MS = 1_000_000
READ = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def two_steps(views_at_ms: int) -> list[Row]:
    """20 ms in two steps, of each 4 waiting for input at its begin, with 400 ops from there on."""
    rows: list[Row] = []
    for number in range(2):
        begin = number * 10 * MS
        rows.append(step(number, begin, 10 * MS))
        rows.append(row("host", "input_wait", begin, 4 * MS, name=READ, step=number, pid=1, tid=1))
        for view in range(200):
            at = begin + views_at_ms * MS + view * 10_000
            rows.append(op(at, 5_000, step=number, family="view", self_ns=3_000))
            rows.append(op(at + 1, 2_000, step=number, family="view", parent_id=len(rows) - 1))
    return rows


@pytest.mark.parametrize(
    ("views_at_ms", "low_ms", "high_ms"),
    [
        # 800 ops at once or twice 3 us are the recorder's, so of 20 ms 17.6 or 15.2 the program's
        (5, 6, 20 * 8 / 15.2),
        # and where the loader runs the ops, the wait is shorter by as much
        (1, 20 * 6 / 8 * (8 - 2.4) / 17.6, 8),
    ],
)
def test_a_wait_is_a_larger_part_of_a_step_that_is_not_recorded(
    views_at_ms: int, low_ms: float, high_ms: float, open_trace: Callable[..., Trace]
) -> None:
    (found,) = run(open_trace(two_steps(views_at_ms)), only=["input_wait"]).findings
    assert (found.saving_low_ns, found.saving_high_ns) == (round(low_ms * MS), round(high_ms * MS))
    assert "not recorded (modelled)" in found.saving_basis
    told = found.evidence
    kept = (told["recorded_saving_low_ns"], told["recorded_saving_high_ns"], told["wait_ns"])
    assert kept == (6 * MS, 8 * MS, 8 * MS)


@pytest.mark.parametrize("acts_on", ["events", "gaps"])
def test_what_the_recorder_took_of_the_work_is_no_sure_saving(
    acts_on: str, open_trace: Callable[..., Trace]
) -> None:
    """All work is what the finding is about, so all ops are recorded for its sake."""
    rows = two_steps(5)
    units = tuple(range(len(rows), len(rows) + 200))
    rows += [op(8 * MS + n * 5_000, 4_000, name="aten::mul", step=0) for n in range(200)]
    given = Finding(
        id="mine",
        analyzer="mine",
        severity="warning",
        title="",
        message="",
        advice="",
        rank=0,
        saving_low_ns=4 * MS,
        saving_high_ns=8 * MS,
        saving_basis="basis",
        event_ids=units,
    )
    (finding,), _ = of_the_step(open_trace(rows), [Found(given, acts_on, 0, 0)])
    # as CPU times stray [3, 10]; 3 ms of the 10 are the recorder's, and of the span's 20 as many;
    # of a gap it is not known
    part = (10 - 3) / (20 - 3) if acts_on == "events" else 10 / 20
    assert finding.saving_low_ns == round(3 / 10 * part * 20 * MS)
    assert finding.saving_high_ns == 10 * MS


def test_without_ops_that_tell_what_recording_costs_nothing_is_changed(
    open_trace: Callable[..., Trace],
) -> None:
    rows = [each for each in two_steps(5) if each.get("family") != "view"]
    (found,) = run(open_trace(rows), only=["input_wait"]).findings
    assert (found.saving_low_ns, found.saving_high_ns) == (6 * MS, 8 * MS)
