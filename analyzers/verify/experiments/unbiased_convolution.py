"""A convolution before a batch norm: with its bias, and without."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Setup, Variants
from neuron_explorer.analyzers.verify.recorded import (
    CannotReplayError,
    RecordedOp,
    ops_by_id,
)
from neuron_explorer.analyzers.verify.resolve import resolve
from neuron_explorer.analyzers.verify.tensors import Spec, make

ANALYZERS = ("convolution_bias_before_norm",)

_NORMS = """
SELECT
    c.event_id AS convolution,
    arg_min(n.event_id, n.start_ns) AS norm
FROM ops AS c
INNER JOIN ops AS n
    ON
        c.rank = n.rank AND c.tid = n.tid AND n.start_ns >= c.end_ns
        AND n.name IN ('aten::batch_norm', 'aten::native_batch_norm', 'aten::cudnn_batch_norm')
WHERE c.rank = $rank AND c.event_id IN (SELECT unnest($ids::BIGINT[]))
GROUP BY c.event_id
"""


def plan(case: Case) -> Plan:
    """Convolution and norm, forward and backward, with and without the bias.

    Raises:
        CannotReplayError: The norm behind the convolution is not found.
    """
    ids = list(case.finding.event_ids)
    rows = case.trace.sql(_NORMS, {"rank": case.rank, "ids": ids}).to_pylist()
    wanted = {row[key] for row in rows for key in ("convolution", "norm")}
    ops = ops_by_id(case.trace, case.rank, wanted)
    kinds: dict[Any, list[tuple[RecordedOp, RecordedOp]]] = {}
    for row in rows:
        pair = ops[row["convolution"]], ops[row["norm"]]
        kinds.setdefault(tuple(op.signature for op in pair), []).append(pair)
    if not kinds:
        raise CannotReplayError("the batch norm behind the convolution is not found")
    setups = [_setup(pairs, case.device) for pairs in kinds.values()]
    claimed = sum(setup.recorded_ns for setup in setups)
    return Plan("with bias", "bias=False", claimed, setups, ("forward and backward",))


def _setup(pairs: list[tuple[RecordedOp, RecordedOp]], device: torch.device) -> Setup:
    convolution, norm = pairs[0]
    return Setup(
        f"{convolution.label}, {norm.name.removeprefix('aten::')}",
        len(pairs),
        sum(op.duration_ns for pair in pairs for op in pair),
        (convolution,),
        partial(_variants, convolution, device),
    )


def _variants(op: RecordedOp, device: torch.device) -> Variants:
    call = resolve(op, device)
    values = [
        make(value, device) if isinstance(value, Spec) else value for _, _, value in call.arguments
    ]
    for tensor in values[:3]:
        tensor.requires_grad_()
    bare = [*values[:2], None, *values[3:]]
    channels = values[1].shape[0]
    scale, shift = (torch.ones(channels, device=device, requires_grad=True) for _ in range(2))

    def step(arguments: list[Any]) -> Any:
        with torch.enable_grad():
            made = torch.nn.functional.batch_norm(
                call.overload(*arguments), None, None, scale, shift, training=True
            )
            taken = [each for each in arguments[:3] if each is not None]
            return torch.autograd.grad(made.sum(), [*taken, scale, shift])

    return Variants(
        {"before": partial(step, values), "after": partial(step, bare)}, None, call.notes
    )
