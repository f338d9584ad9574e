"""An optimizer's step: parameter by parameter, and all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from neuron_explorer.analyzers.verify.plans import Case, Plan, Setup, Variants
from neuron_explorer.analyzers.verify.recorded import (
    CannotReplayError,
    RecordedOp,
    ops_of_work,
)
from neuron_explorer.analyzers.verify.tensors import make, spec

ANALYZERS = ("single_tensor_optimizer",)

_NO_UPDATE = ("copy_", "_local_scalar_dense", "fill_", "zero_", "empty", "item")

_SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "SGD": ({}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 0.01}, {"weight_decay": 0.01}),
    "Adam": ({}, {"weight_decay": 0.01}, {"amsgrad": True}),
    "AdamW": ({}, {"amsgrad": True}),
    "RMSprop": ({}, {"momentum": 0.9}, {"centered": True}),
}
"""Hyper-parameters that change which ops run; which of them was used is told by the ops."""


def plan(case: Case) -> Plan:
    """The class that the trace names, with the recorded shapes of its parameters.

    Raises:
        CannotReplayError: No class of torch.optim is named, or no op names its parameters.
    """
    name = str(case.finding.evidence.get("optimizer")).removesuffix(".step")
    made = getattr(torch.optim, name, None)
    if made is None:
        raise CannotReplayError(f"torch.optim has no optimizer {name!r} to build again")
    ops = ops_of_work(case.trace, case.rank, case.finding.event_ids)
    calls = max(case.number("calls"), 1)
    first = ops[: max(len(ops) // calls, 1)]
    updates = _updates(first)
    taken = case.finding.device_time_ns or 0
    if case.finding.evidence.get("device") == "cpu":
        taken = max(taken, case.number("host_ns"))
    else:
        taken += case.number("idle_ns")
    build = partial(_variants, made, name, first, updates, case.device)
    label = f"{name}.step of {len(updates)} tensors"
    kind = "fused=True" if _has_fused(made, updates, case.device) else "foreach=True"
    setup = Setup(label, calls, taken, tuple(updates), build)
    return Plan("foreach=False", kind, taken, [setup])


def _updates(ops: Sequence[RecordedOp]) -> list[RecordedOp]:
    """The op that runs once a parameter."""
    counted = Counter(
        op.name for op in ops if op.name.removeprefix("aten::") not in _NO_UPDATE and _sized(op)
    )
    if not counted:
        raise CannotReplayError("no recorded op shows the shapes of the parameters")
    most = counted.most_common(1)[0][0]
    return [op for op in ops if op.name == most and _sized(op)]


def _sized(op: RecordedOp) -> bool:
    return bool(op.slots and op.slots[0].shape)


def _parameters(updates: Sequence[RecordedOp], device: torch.device) -> list[torch.nn.Parameter]:
    made = []
    for op in updates:
        slot = op.slots[0]
        tensor = make(spec(slot.dtype, slot.shape, slot.strides), device)
        parameter = torch.nn.Parameter(tensor)
        parameter.grad = torch.randn_like(tensor)
        made.append(parameter)
    return made


def _has_fused(made: Any, updates: Sequence[RecordedOp], device: torch.device) -> bool:
    """Whether the class has a fused form on this device."""
    slot = updates[0].slots[0]
    one = torch.nn.Parameter(make(spec(slot.dtype, (1,), None), device))
    try:
        made([one], fused=True)
    except (RuntimeError, TypeError):
        return False
    return True


def _variants(
    made: Any,
    name: str,
    recorded: Sequence[RecordedOp],
    updates: Sequence[RecordedOp],
    device: torch.device,
) -> Variants:
    settings = _settings(made, name, recorded, device)
    joint = {"fused": True} if _has_fused(made, updates, device) else {"foreach": True}
    before = made(_parameters(updates, device), foreach=False, **settings)
    after = made(_parameters(updates, device), **joint, **settings)
    said = ", ".join(f"{key}={value}" for key, value in settings.items())
    note = f"{name} with {said or 'the defaults of its class'}, the nearest to the recorded ops"
    return Variants({"before": before.step, "after": after.step}, None, (note,))


def _settings(
    made: Any, name: str, recorded: Sequence[RecordedOp], device: torch.device
) -> dict[str, Any]:
    """Of the known hyper-parameters those whose step runs the ops most like the recorded."""
    wanted = {op.name.removeprefix("aten::") for op in recorded}
    tried = _SETTINGS.get(name, ({},))
    return min(tried, key=lambda each: len(wanted ^ _ops_of_step(made, each, device)))


def _ops_of_step(made: Any, settings: dict[str, Any], device: torch.device) -> set[str]:
    parameter = torch.nn.Parameter(torch.ones(2, device=device))
    parameter.grad = torch.ones_like(parameter)
    optimizer = made([parameter], foreach=False, **settings)
    optimizer.step()  # the first one also makes its state
    names: set[str] = set()
    with _Names(names):
        optimizer.step()
    return names


class _Names(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own is untyped
    """Collects the names of the ops that run."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names = names

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func._schema.name.removeprefix("aten::"))  # noqa: SLF001
        return func(*args, **(kwargs or {}))
