"""Copies that only change a layout: copied and then read, and read as it lies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, RefutedError, Setup, Variants
from neuron_explorer.analyzers.verify.programs import Program, build
from neuron_explorer.analyzers.verify.recorded import (
    CannotReplayError,
    RecordedOp,
    Slot,
    alike,
    ops_by_id,
    ops_of_work,
)
from neuron_explorer.analyzers.verify.tensors import contiguous_strides, make, spec

ANALYZERS = ("layout_copies",)

_NEXT_UNITS = 6
"""How far behind a copy its reader may lie."""

_FOLLOWERS = """
WITH ordered AS (
    SELECT
        event_id,
        op_id,
        lead(op_id, 1) OVER q AS n1,
        lead(op_id, 2) OVER q AS n2,
        lead(op_id, 3) OVER q AS n3,
        lead(op_id, 4) OVER q AS n4,
        lead(op_id, 5) OVER q AS n5,
        lead(op_id, 6) OVER q AS n6
    FROM work
    WHERE rank = $rank
    WINDOW q AS (PARTITION BY device, queue ORDER BY start_ns ASC, event_id ASC)
)

SELECT
    op_id,
    [n1, n2, n3, n4, n5, n6] AS followers
FROM ordered
WHERE event_id IN (SELECT unnest($ids::BIGINT[]))
"""


def plan(case: Case) -> Plan:
    """Each kind of copy with the op that reads its result.

    Raises:
        CannotReplayError: No op behind a copy takes a tensor of its size.
    """
    ids = list(case.finding.event_ids)
    rows = case.trace.sql(_FOLLOWERS, {"rank": case.rank, "ids": ids}).to_pylist()
    followers = {row["op_id"]: [each for each in row["followers"] if each] for row in rows}
    near = ops_by_id(case.trace, case.rank, {n for each in followers.values() for n in each})
    setups = []
    for group in alike(ops_of_work(case.trace, case.rank, ids)):
        readers = [_reader(op, followers.get(op.event_id, []), near) for op in group]
        known = [(op, found) for op, found in zip(group, readers, strict=True) if found]
        if known:
            setups.append(_setup(known, case.device))
    if not setups:
        raise CannotReplayError("no op close behind the copy reads a tensor of its size")
    return Plan("copied, then read", "read as it lies", sum(s.recorded_ns for s in setups), setups)


Found = tuple[RecordedOp, int]


def _reader(
    copy: RecordedOp, followers: Sequence[int], near: dict[int, RecordedOp]
) -> Found | None:
    """The first op that takes a tensor as large as the copy, and the place of that argument."""
    target = copy.slots[0]
    for id_ in followers:
        op = near.get(id_)
        for place, slot in enumerate(op.slots if op else ()):
            if op and slot.dtype == target.dtype and _elements(slot) == _elements(target):
                return op, place
    return None


def _elements(slot: Slot) -> int | None:
    if not isinstance(slot.shape, tuple) or not slot.shape:
        return None
    return int(torch.Size(slot.shape).numel()) if isinstance(slot.shape[0], int) else None


def _setup(known: Sequence[tuple[RecordedOp, Found]], device: torch.device) -> Setup:
    copy, (reader, place) = known[0]
    recorded = sum(op.duration_ns + found[0].duration_ns for op, found in known)
    return Setup(
        f"{copy.label}, {reader.label}",
        len(known),
        recorded,
        (copy, reader),
        partial(_variants, copy, reader, place, device),
    )


def _variants(copy: RecordedOp, reader: RecordedOp, place: int, device: torch.device) -> Variants:
    target, origin = copy.slots[0], copy.slots[1]
    source = make(spec(origin.dtype, origin.shape, origin.strides), device)
    dense = _laid_out(source, target)
    slot = reader.slots[place]
    shape, strides = slot.shape, slot.strides or tuple(contiguous_strides(slot.shape))
    program = build([reader], device)
    position = _input_of(program, shape, strides)
    strided = _as_read(source, shape)

    def read(tensor: torch.Tensor) -> Any:
        inputs = list(program.inputs)
        inputs[position] = tensor
        return program.function(*inputs)

    def before() -> Any:
        return read(_laid_out(source, target).as_strided(shape, strides))

    read(dense.as_strided(shape, strides))
    try:
        read(strided)
    except RuntimeError as error:
        first = str(error).partition("\n")[0]
        raise RefutedError(f"{reader.name} does not take it as it lies: {first}") from error
    return Variants({"before": before, "after": lambda: read(strided)}, None, program.notes)


def _laid_out(source: torch.Tensor, target: Slot) -> torch.Tensor:
    strides = target.strides or contiguous_strides(target.shape)
    made = torch.empty_strided(target.shape, strides, dtype=source.dtype, device=source.device)
    return made.copy_(source)


def _input_of(program: Program, shape: Sequence[int], strides: Sequence[int]) -> int:
    for place, made in enumerate(program.inputs):
        if tuple(made.shape) == tuple(shape) and made.stride() == tuple(strides):
            return place
    raise CannotReplayError("the argument that takes the copy is not recorded")


def _as_read(source: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The strided tensor in the shape of its reader."""
    try:
        return source.view(list(shape))
    except RuntimeError as error:
        raise RefutedError(
            f"its reader takes it as {list(shape)}, of which {list(source.shape)} with strides"
            f" {list(source.stride())} is no view: the copy stays unless the tensor is made in"
            " another order"
        ) from error
