"""On a CPU a compiled call costs guards and a wrapper: what it surely saves is less that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from recorded_ops import chain, two_runs

from builders import Row, op
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

ANALYZER = "compile_opportunities"


def low_ns(trace: Trace, **params: int) -> int:
    given = {f"{ANALYZER}.{name}": value for name, value in params.items()}
    (found,) = run(trace, only=[ANALYZER], params=given).findings
    assert found.saving_low_ns is not None
    return found.saving_low_ns


@pytest.mark.parametrize(
    ("phase", "name"), [("forward", "compiled_call_ns"), ("backward", "compiled_autograd_ns")]
)
def test_each_run_pays_for_a_compiled_call(
    phase: str, name: str, open_trace: Callable[..., Trace]
) -> None:
    last = op(50_000_000, 1_000, name="aten::mm", phase=phase, family="matmul")
    trace = open_trace([*two_runs(size=4096), last])
    free = low_ns(trace, compiled_call_ns=0, compiled_autograd_ns=0)
    # two runs; three quarters, as CPU times stray
    assert free - low_ns(trace, **{name: 40_000}) == round(2 * 40_000 * 0.75)
    assert low_ns(trace, **{name: 100_000_000}) == 0


def test_one_run_that_took_long_says_nothing_of_the_others(
    open_trace: Callable[..., Trace],
) -> None:
    def low_of(slow_run: int) -> int:
        rows: list[Row] = []
        for number in range(8):
            slowed = 50 if number == slow_run else 1
            run_of_ops = chain(number * 200_000_000, size=4096)
            rows += [{**each, "duration_ns": 900_000 * slowed} for each in run_of_ops]
            rows.append(op(number * 200_000_000 + 190_000_000, 1_000, name="aten::mm"))
        return low_ns(open_trace(rows))

    assert low_of(slow_run=3) <= 1.01 * low_of(slow_run=-1)
