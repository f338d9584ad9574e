"""The same op on many small tensors: one after the other, and the list in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Setup, Variants
from neuron_explorer.analyzers.verify.recorded import (
    CannotReplayError,
    RecordedOp,
    alike,
    ops_of_work,
)
from neuron_explorer.analyzers.verify.resolve import Call, resolve
from neuron_explorer.analyzers.verify.tensors import Spec, make

ANALYZERS = ("many_small_tensors",)

_NAMES = {"linalg_vector_norm": "norm", "rsub": "sub"}
"""Ops whose form for lists has another name."""


def plan(case: Case) -> Plan:
    """Each kind of op that has a form for lists.

    Raises:
        CannotReplayError: None has.
    """
    ops = ops_of_work(case.trace, case.rank, case.finding.event_ids)
    runs = max(case.number("runs"), 1)
    groups = [group for group in alike(ops) if _for_lists(group[0])]
    if not groups:
        raise CannotReplayError(f"torch has no form of {ops[0].name} that takes a list of tensors")
    setups = [_setup(group, max(len(group) // runs, 1), case.device) for group in groups]
    claimed = max(
        case.number("taken_ns"), case.number("host_ns"), sum(op.duration_ns for op in ops)
    )
    return Plan(
        "one by one",
        "torch._foreach_...",
        claimed,
        setups,
        ("only the forward is replayed, and a flat tensor may gain more than a list",),
    )


def _for_lists(op: RecordedOp) -> Callable[..., Any] | None:
    base = op.name.removeprefix("aten::")
    in_place = "_" if base.endswith("_") else ""
    base = base.removesuffix("_")
    return getattr(torch, f"_foreach_{_NAMES.get(base, base)}{in_place}", None)


def _setup(group: Sequence[RecordedOp], tensors: int, device: torch.device) -> Setup:
    first = group[0]
    recorded = sum(op.duration_ns for op in group)
    build = partial(_variants, first, tensors, device)
    occurrences = max(len(group) // tensors, 1)
    ops = (first,) * tensors
    return Setup(f"{tensors} x {first.label}", occurrences, recorded, ops, build)


def _variants(op: RecordedOp, tensors: int, device: torch.device) -> Variants:
    call = resolve(op, device)
    calls = [_made(call, device) for _ in range(tensors)]
    lists = [_listed(call, place, calls) for place in range(len(call.arguments))]
    # what is left out or has its default is no part of the form for lists
    given = [each for each in lists if each is not None and each is not False]
    joint = _for_lists(op)
    assert joint is not None
    after = partial(joint, *given)
    try:
        after()
    except (RuntimeError, TypeError) as error:
        first = str(error).strip().partition("\n")[0]
        raise CannotReplayError(f"the form of {op.name} for lists does not run: {first}") from error
    kept = [[t.clone() for t in each] for each in lists if isinstance(each, list)]
    written = [each for each in lists if isinstance(each, list)]

    def reset() -> None:
        for tensors_now, first_values in zip(written, kept, strict=True):
            torch._foreach_copy_(tensors_now, first_values)

    return Variants(
        {"before": partial(_one_by_one, call, calls), "after": after},
        reset if call.written else None,
        call.notes,
    )


def _one_by_one(call: Call, calls: Sequence[Sequence[Any]]) -> None:
    names = [(name, by_keyword) for name, by_keyword, _ in call.arguments]
    for values in calls:
        pairs = list(zip(names, values, strict=True))
        plain = [value for (_, by_keyword), value in pairs if not by_keyword]
        named = {name: value for (name, by_keyword), value in pairs if by_keyword}
        call.overload(*plain, **named)


def _made(call: Call, device: torch.device) -> list[Any]:
    return [
        make(value, device) if isinstance(value, Spec) else value for _, _, value in call.arguments
    ]


def _listed(call: Call, place: int, calls: Sequence[Sequence[Any]]) -> Any:
    """All tensors of one argument, or its plain value; None where it is its default."""
    name, _, value = call.arguments[place]
    if isinstance(value, Spec):
        return [values[place] for values in calls]
    default = next(
        each
        for each in call.overload._schema.arguments  # noqa: SLF001
        if each.name == name
    )
    return None if default.has_default_value() and default.default_value == value else value
