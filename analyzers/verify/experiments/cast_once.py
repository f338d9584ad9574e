"""The same cast again and again, and once."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Variants, setups_alike
from neuron_explorer.analyzers.verify.programs import Program, build
from neuron_explorer.analyzers.verify.recorded import RecordedOp, alike, ops_of_work

ANALYZERS = ("repeated_casts",)


def plan(case: Case) -> Plan:
    """Each kind of cast as often as the finding counts, and once."""
    ops = ops_of_work(case.trace, case.rank, case.finding.event_ids)
    casts = case.number("casts") or len(ops)
    times = max(round(casts / max(casts - case.number("repeats"), 1)), 1)
    build_one = partial(_variants, times=times, device=case.device)
    return Plan(
        f"{times} casts",
        "one cast",
        sum(op.duration_ns for op in ops),
        setups_alike(alike(ops), build_one),
        ("whether it is the same tensor each time is not recorded, and not tested here",),
    )


def _variants(op: RecordedOp, *, times: int, device: torch.device) -> Variants:
    program = build([op], device)
    return Variants(
        {"before": partial(_repeat, program, times), "after": partial(_repeat, program, 1)},
        None,
        program.notes,
    )


def _repeat(program: Program, times: int) -> Any:
    for _ in range(times):
        program.run()
