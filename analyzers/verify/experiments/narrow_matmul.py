"""Matrix work in fp32, and in what the chip has that is faster."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Variants, setups_alike
from neuron_explorer.analyzers.verify.programs import Program, build
from neuron_explorer.analyzers.verify.recorded import (
    CannotReplayError,
    RecordedOp,
    alike,
    ops_of_work,
)

ANALYZERS = ("low_precision_matmul",)

_HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}

_WITHOUT_CASTS = "without casts"


def plan(case: Case) -> Plan:
    """fp32 against the precision that the finding names.

    Raises:
        CannotReplayError: The precision is TF32 and the device no CUDA one, or is unknown.
    """
    target = str(case.finding.evidence.get("target"))
    notes: tuple[str, ...] = ()
    if target == "TF32":
        if case.device.type != "cuda":
            raise CannotReplayError(f"TF32 exists on CUDA devices only, and this is {case.device}")
        variants = partial(_tf32, device=case.device)
    elif target in _HALVES:
        variants = partial(_half, device=case.device, dtype=_HALVES[target])
        notes = (f"{target} with a cast of every input, as autocast does at its first meeting",)
    else:
        raise CannotReplayError(f"no experiment knows the precision {target}")
    ops = ops_of_work(case.trace, case.rank, case.finding.event_ids)
    claimed = sum(op.duration_ns for op in ops)
    return Plan("fp32", target, claimed, setups_alike(alike(ops), variants), notes)


def _half(op: RecordedOp, *, device: torch.device, dtype: torch.dtype) -> Variants:
    program = build([op], device)
    places = _narrowable(program, dtype)

    def narrowed() -> list[torch.Tensor]:
        return [x.to(dtype) if n in places else x for n, x in enumerate(program.inputs)]

    kept = narrowed()
    return Variants(
        {
            "before": program.run,
            "after": lambda: program.function(*narrowed()),
            _WITHOUT_CASTS: lambda: program.function(*kept),
        },
        None,
        program.notes,
    )


def _narrowable(program: Program, dtype: torch.dtype) -> frozenset[int]:
    """Inputs that the op takes in the narrow dtype: all, or its operands but no statistics.

    Raises:
        CannotReplayError: It takes neither.
    """
    wide = {n: x.dim() for n, x in enumerate(program.inputs) if x.dtype == torch.float32}
    operands = [n for n, dims in wide.items() if dims == max(wide.values())]
    for places in (frozenset(wide), frozenset(operands)):
        given = [x.to(dtype) if n in places else x for n, x in enumerate(program.inputs)]
        try:
            program.function(*given)
        except RuntimeError:
            continue
        return places
    raise CannotReplayError(f"the op does not take {dtype} here")


def _tf32(op: RecordedOp, *, device: torch.device) -> Variants:
    program = build([op], device)
    return Variants(
        {
            "before": partial(_with_tf32, program, allowed=False),
            "after": partial(_with_tf32, program, allowed=True),
        },
        None,
        program.notes,
    )


def _with_tf32(program: Program, *, allowed: bool) -> Any:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    were = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = allowed
    try:
        return program.run()
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = were
