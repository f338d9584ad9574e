"""What a line spells out in many ops: as recorded, and as the one op that PyTorch has for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from neuron_explorer.analyzers.verify.plans import Case, Plan, Setup, Variants
from neuron_explorer.analyzers.verify.programs import build
from neuron_explorer.analyzers.verify.recorded import (
    CannotReplayError,
    RecordedOp,
    Shape,
    Slot,
    ops_by_id,
)
from neuron_explorer.analyzers.verify.tensors import make, spec

ANALYZERS = ("handwritten_fused_ops",)

_RUNS = """
SELECT
    p.letters,
    p.shape::BIGINT[] AS shape,
    list(c.event_id ORDER BY c.place ASC) AS op_ids,
    sum(c.work_ns)::BIGINT AS work_ns
FROM op_patterns AS p
INNER JOIN op_calls AS c
    ON
        p.rank = c.rank AND p.pid IS NOT DISTINCT FROM c.pid
        AND p.tid IS NOT DISTINCT FROM c.tid AND c.place BETWEEN p.first_place AND p.last_place
WHERE
    p.rank = $rank AND p.pattern = $pattern
    AND c.work_ns IS NOT NULL AND c.family IS DISTINCT FROM 'view'
GROUP BY p.rank, p.pid, p.tid, p.first_place, p.letters, p.shape
HAVING bool_or(list_has_any(c.work_ids, $ids::BIGINT[]))
ORDER BY min(c.start_ns) ASC
"""


@dataclass(frozen=True)
class _Written:
    """One kind of run."""

    letters: str
    shape: Shape
    """Of what it computes."""
    ops: tuple[RecordedOp, ...]

    @property
    def dtype(self) -> str:
        """That of the first floating-point tensor of this shape.

        Raises:
            CannotReplayError: No op takes one.
        """
        for slot in (slot for op in self.ops for slot in op.slots):
            if slot.shape == self.shape and slot.dtype not in {"bool", "long int", "int"}:
                return slot.dtype
        raise CannotReplayError(f"no op of the run takes a tensor of {list(self.shape)}")


Fused = Callable[[_Written, torch.device], Callable[[], Any]]


def plan(case: Case) -> Plan:
    """Every kind of run that the finding talks about.

    Raises:
        CannotReplayError: No op of PyTorch does what it spells out, or no run is known.
    """
    pattern = str(case.finding.evidence.get("pattern"))
    fused = _FUSED.get(pattern)
    if fused is None:
        raise CannotReplayError(f"PyTorch has no one op for {pattern.replace('_', ' ')}")
    asked = {"rank": case.rank, "pattern": pattern, "ids": list(case.finding.event_ids)}
    kinds: dict[Any, list[tuple[_Written, int]]] = {}
    for row in case.trace.sql(_RUNS, asked).to_pylist():
        ops = tuple(ops_by_id(case.trace, case.rank, row["op_ids"]).values())
        run = _Written(row["letters"], tuple(row["shape"]), ops)
        kinds.setdefault(tuple(op.signature for op in ops), []).append((run, row["work_ns"]))
    if not kinds:
        raise CannotReplayError("the trace holds none of its runs any more")
    return Plan(
        "as written",
        f"one {pattern}",
        case.finding.device_time_ns or 0,
        [_setup(kind, fused, case.device) for kind in kinds.values()],
        ("only the forward is replayed: its backward is taken to gain the same part",),
    )


def _setup(kind: Sequence[tuple[_Written, int]], fused: Fused, device: torch.device) -> Setup:
    run = kind[0][0]
    label = ", ".join(op.label for op in run.ops)
    recorded = sum(work_ns for _, work_ns in kind)
    return Setup(label, len(kind), recorded, run.ops, partial(_variants, run, fused, device))


def _variants(run: _Written, fused: Fused, device: torch.device) -> Variants:
    program = build(run.ops, device)
    after = fused(run, device)
    after()
    reset = program.reset if program.written else None
    return Variants({"before": program.run, "after": after}, reset, program.notes)


def _tensor(run: _Written, device: torch.device, shape: Shape | None = None) -> torch.Tensor:
    return make(spec(run.dtype, run.shape if shape is None else shape, None), device)


def _gelu(run: _Written, device: torch.device) -> Callable[[], Any]:
    form = "tanh" if "h" in run.letters else "none"
    return partial(functional.gelu, _tensor(run, device), approximate=form)


def _norm(function: Callable[..., Any]) -> Fused:
    def made(run: _Written, device: torch.device) -> Callable[[], Any]:
        last = run.shape[-1:]
        weights = [_tensor(run, device, last) for letter in run.letters if letter == "w"]
        return partial(function, _tensor(run, device), last, *weights)

    return made


def _of_the_last(function: Callable[..., Any]) -> Fused:
    return lambda run, device: partial(function, _tensor(run, device), -1)


def _of_targets(function: Callable[..., Any]) -> Fused:
    return lambda run, device: partial(function, _tensor(run, device), _tensor(run, device))


def _cross_entropy(run: _Written, device: torch.device) -> Callable[[], Any]:
    if run.letters.startswith("O"):
        return partial(torch.log_softmax, _tensor(run, device), -1)
    rows = (-1, run.shape[-1])
    return partial(
        functional.cross_entropy,
        _tensor(run, device).view(rows),
        _tensor(run, device).view(rows),
    )


def _attention(run: _Written, device: torch.device) -> Callable[[], Any]:
    products = [op for op in run.ops if op.name in {"aten::matmul", "aten::bmm"}]
    if len(products) != 2:  # the scores, and the mean of the values by them
        raise CannotReplayError("the two products of the attention are no matmul or bmm")
    queries, keys = (_as_recorded(slot, device) for slot in products[0].slots[:2])
    values = _as_recorded(products[1].slots[1], device)
    return partial(functional.scaled_dot_product_attention, queries, keys.transpose(-1, -2), values)


def _as_recorded(slot: Slot, device: torch.device) -> torch.Tensor:
    return make(spec(slot.dtype, slot.shape, slot.strides), device)


_FUSED: dict[str, Fused] = {
    "attention": _attention,
    "binary_cross_entropy": _of_targets(functional.binary_cross_entropy_with_logits),
    "cross_entropy": _cross_entropy,
    "gelu": _gelu,
    "layer_norm": _norm(functional.layer_norm),
    "log_softmax": _of_the_last(torch.log_softmax),
    "rms_norm": _norm(functional.rms_norm),
    "softmax": _of_the_last(torch.softmax),
}
