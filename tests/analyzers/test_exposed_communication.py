"""Communication that recurs, against what only sets a job up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import kernel, step
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

MS = 1_000_000


@pytest.mark.parametrize(
    ("steps", "gathered_in", "severity"),
    [(4, (0,), "info"), (4, (0, 1), "warning"), (2, (0,), "warning")],
)
def test_what_runs_once_in_several_steps_is_set_up(
    steps: int, gathered_in: tuple[int, ...], severity: str, open_trace: Callable[..., Trace]
) -> None:
    rows = [step(number, number * 10 * MS, 10 * MS) for number in range(steps)]
    rows += [kernel(number * 10 * MS, MS, step=number) for number in range(steps)]
    rows += [
        kernel(number * 10 * MS + MS, 5 * MS, kind="collective", queue="stream 20", step=number)
        for number in gathered_in
    ]
    (found,) = run(open_trace(rows), only=["exposed_communication"]).findings
    assert (found.severity, found.evidence["events"]) == (severity, len(gathered_in))
