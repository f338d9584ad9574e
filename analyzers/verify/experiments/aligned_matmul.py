"""Half-precision products of odd sizes, and of sizes that tensor cores load whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Variants, setups_alike
from neuron_explorer.analyzers.verify.programs import build
from neuron_explorer.analyzers.verify.recorded import RecordedOp, Slot, alike, ops_of_work

ANALYZERS = ("misaligned_matmul",)

_WHOLE = 8
"""Elements: 16 bytes of a half-precision tensor."""


def plan(case: Case) -> Plan:
    """As recorded against all sizes rounded up: more arithmetic, fewer partial loads."""
    ops = ops_of_work(case.trace, case.rank, case.finding.event_ids)
    return Plan(
        "sizes as recorded",
        f"sizes rounded up to {_WHOLE}",
        sum(op.duration_ns for op in ops),
        setups_alike(alike(ops), partial(_variants, device=case.device)),
        ("the padding itself is not measured: it is made once, with the weights",),
    )


def _variants(op: RecordedOp, *, device: torch.device) -> Variants:
    before = build([op], device)
    after = build([replace(op, slots=tuple(_padded(slot) for slot in op.slots))], device)
    return Variants({"before": before.run, "after": after.run}, None, before.notes)


def _padded(slot: Slot) -> Slot:
    """The same slot with its matrix or vector sizes rounded up, laid out in the same order."""
    if not slot.shape or not all(isinstance(size, int) for size in slot.shape):
        return slot
    batch, sizes = slot.shape[:-2], slot.shape[-2:]
    rounded = tuple(-(-size // _WHOLE) * _WHOLE if size > 1 else size for size in sizes)
    transposed = bool(slot.strides) and len(sizes) > 1 and slot.strides[-2] < slot.strides[-1]
    strides = (1, rounded[0]) if transposed and not batch else None
    return replace(slot, shape=(*batch, *rounded), strides=strides)
