"""Python between ops: from the begin of a step on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import Row, op, step
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


def stretches(*lengths_ns: int) -> list[Row]:
    """Steps of 10 ms: a stretch of Python, then an op to their end, each after a first op."""
    rows = []
    for number, length_ns in enumerate(lengths_ns):
        begin = number * 10 * MS
        rows += [
            step(number, begin, 10 * MS),
            op(begin, MS, step=number),
            op(begin + MS + length_ns, 9 * MS - length_ns, step=number),
        ]
    return rows


@pytest.mark.parametrize(
    ("lengths_ns", "severity", "saving_ns"),
    [
        ((3 * MS,) * 4, "warning", 12 * MS),
        # 1.5 ms of the first step, and the quarter more by which times of a CPU vary
        ((8 * MS, MS, MS // 2, MS // 2), "info", 35 * MS // 8),
        ((MS,) * 4, "warning", 4 * MS),
        ((MS // 2,) * 4, "info", 2 * MS),
    ],
)
def test_one_long_stretch_is_no_habit_and_no_steps_saving(
    lengths_ns: tuple[int, ...], severity: str, saving_ns: int, open_trace: Callable[..., Trace]
) -> None:
    trace = open_trace(stretches(*lengths_ns))
    (found,) = run(trace, only=["python_overhead"]).findings
    assert found.evidence["gap_ns"] == sum(lengths_ns)
    assert (found.severity, found.saving_high_ns) == (severity, saving_ns)


def test_what_recording_lines_costs_is_neither_pythons_nor_the_steps(
    open_trace: Callable[..., Trace],
) -> None:
    def severity(marks: int) -> str:
        capture = {"capture": {"lines": {"marks": marks}}}
        trace = open_trace(stretches(*(3 * MS,) * 4), metadata=capture)
        (found,) = run(trace, only=["python_overhead"]).findings
        return found.severity

    # of 12 ms in 40 the recorder may have taken 8, or 9: 4 of 32 are more than a tenth, 3 of 31 not
    assert [severity(8_000), severity(9_000)] == ["warning", "info"]


@pytest.mark.parametrize(("recording_ns", "stretches_told"), [(2_000, 4), (4_000, None)])
def test_what_is_ordinary_grows_with_what_an_op_costs(
    recording_ns: int, stretches_told: int | None, open_trace: Callable[..., Trace]
) -> None:
    """`t` only calls `transpose`: what it takes itself is what recording that one costs."""
    rows = stretches(*(MS // 5,) * 4)
    for number in range(16):
        begin = 40 * MS + number * 20_000
        outer = len(rows)
        around = {"name": "aten::t", "family": "view", "self_ns": recording_ns}
        rows.append(op(begin, 10_000 + recording_ns, **around))
        rows.append(op(begin + 1_000, 10_000, name="aten::transpose", parent_id=outer))
    found = run(open_trace(rows), only=["python_overhead"], params={"min_share": 0.01}).findings
    assert [each.evidence["gaps"] for each in found] == (
        [] if stretches_told is None else [stretches_told]
    )


def test_set_up_alone_is_not_told(open_trace: Callable[..., Trace]) -> None:
    trace = open_trace(stretches(8 * MS, *(MS // 8,) * 5))
    # without set-up 1 ms in 60
    assert run(trace, only=["python_overhead"]).findings == []


def test_the_begin_of_a_step_is_the_recorders(open_trace: Callable[..., Trace]) -> None:
    rows = []
    for number in range(4):
        begin = number * MS
        rows += [step(number, begin, MS), op(begin + MS // 2, MS // 2, step=number)]
    assert run(open_trace(rows), only=["python_overhead"]).findings == []
