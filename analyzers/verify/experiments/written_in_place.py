"""A tensor that grows by concatenation: copied whole, and written behind what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Setup, Variants
from neuron_explorer.analyzers.verify.recorded import CannotReplayError, RecordedOp, ops_of_work
from neuron_explorer.analyzers.verify.resolve import resolve
from neuron_explorer.analyzers.verify.tensors import Spec, make

ANALYZERS = ("grown_by_cat",)

_LENGTHS = 3
"""Every call has another length; so many groups of them stand for all, each by its middle one."""


def plan(case: Case) -> Plan:
    """Calls in order of their time, in a few groups."""
    ops = sorted(
        ops_of_work(case.trace, case.rank, case.finding.event_ids), key=lambda op: op.duration_ns
    )
    bounds = [len(ops) * part // _LENGTHS for part in range(_LENGTHS + 1)]
    groups = [ops[a:b] for a, b in pairwise(bounds) if b > a]
    return Plan(
        "torch.cat",
        "written into a tensor of the full length",
        sum(op.duration_ns for op in ops),
        [_setup(group, case.device) for group in groups],
        ("what reads the tensor afterwards is not replayed: it then reads a part of a longer one",),
    )


def _setup(group: Sequence[RecordedOp], device: torch.device) -> Setup:
    middle = group[len(group) // 2]
    recorded = sum(op.duration_ns for op in group)
    return Setup(middle.label, len(group), recorded, (middle,), partial(_variants, middle, device))


def _variants(op: RecordedOp, device: torch.device) -> Variants:
    call = resolve(op, device)
    tensors, dimension = _arguments(call.arguments, device)
    whole = torch.cat(tensors, dimension)
    return Variants(
        {
            "before": partial(torch.cat, tensors, dimension),
            "after": _writes(whole, tensors, dimension),
        },
        None,
        call.notes,
    )


def _arguments(
    arguments: Sequence[tuple[str, bool, Any]], device: torch.device
) -> tuple[list[torch.Tensor], int]:
    given = {name: value for name, _, value in arguments}
    specs = [each for each in given.get("tensors", ()) if isinstance(each, Spec)]
    if len(specs) < 2:
        raise CannotReplayError("it joins fewer than two tensors")
    dimension = given.get("dim", 0)
    return [make(each, device) for each in specs], dimension if isinstance(dimension, int) else 0


def _writes(
    whole: torch.Tensor, tensors: Sequence[torch.Tensor], dimension: int
) -> Callable[[], None]:
    """Copies all but the longest tensor to their places in the whole one."""
    longest = max(range(len(tensors)), key=lambda place: tensors[place].numel())
    ends = [0]
    for tensor in tensors:
        ends.append(ends[-1] + tensor.shape[dimension])
    new = [(place, tensor) for place, tensor in enumerate(tensors) if place != longest]

    def write() -> None:
        for place, tensor in new:
            whole.narrow(dimension, ends[place], tensor.shape[dimension]).copy_(tensor)

    return write
