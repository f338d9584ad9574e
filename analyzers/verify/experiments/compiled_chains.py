"""Runs of eager ops: as recorded, and compiled as one function."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Setup, Variants
from neuron_explorer.analyzers.verify.programs import build
from neuron_explorer.analyzers.verify.recorded import CannotReplayError, RecordedOp, ops_by_id

ANALYZERS = ("compile_opportunities", "hbm_bound_eager_ops", "uncompiled_module")

_MOST_SAID = 200
"""Characters of the compiler's words that are passed on."""

_NOTES = (
    "results that only the run itself reads are not kept, as where no backward needs them",
    "each run is compiled on its own: a function or module as a whole may fuse more",
)

_CHAINS = """
WITH wanted AS (SELECT unnest($ids::BIGINT[]) AS event_id),

members AS (
    SELECT
        c.chain_id,
        unnest(c.event_ids) AS event_id
    FROM chains AS c
    WHERE c.rank = $rank
),

found AS (
    SELECT
        m.chain_id,
        sum(w.duration_ns)::BIGINT AS claimed_ns
    FROM members AS m
    INNER JOIN wanted USING (event_id)
    INNER JOIN work AS w ON w.rank = $rank AND m.event_id = w.event_id
    GROUP BY m.chain_id
)

SELECT
    f.claimed_ns,
    c.op_ids,
    c.device_time_ns
FROM found AS f
INNER JOIN chains AS c ON c.rank = $rank AND f.chain_id = c.chain_id
ORDER BY c.start_ns ASC
"""


def plan(case: Case) -> Plan:
    """Every kind of run that holds one of the finding's events.

    Raises:
        CannotReplayError: None of them is in a run.
    """
    ids = list(case.finding.event_ids)
    rows = case.trace.sql(_CHAINS, {"rank": case.rank, "ids": ids}).to_pylist()
    if not rows:
        raise CannotReplayError("no neighbour on its queue could be fused with these ops")
    ops = ops_by_id(case.trace, case.rank, (id_ for row in rows for id_ in row["op_ids"]))
    kinds: dict[Any, list[tuple[list[RecordedOp], int]]] = {}
    for row in rows:
        chain = [ops[id_] for id_ in row["op_ids"] if id_ in ops]
        key = tuple(op.signature for op in chain)
        kinds.setdefault(key, []).append((chain, row["device_time_ns"]))
    # gaps between its kernels are part of what compiling spares
    claimed = sum(row["claimed_ns"] for row in rows) + case.number("idle_between_ns")
    return Plan(
        "eager",
        "torch.compile",
        claimed,
        [_setup(case, kind) for kind in kinds.values()],
        _NOTES,
    )


def _setup(case: Case, kind: list[tuple[list[RecordedOp], int]]) -> Setup:
    chain = kind[0][0]
    recorded = sum(time_ns for _, time_ns in kind)
    return Setup(
        _label(chain), len(kind), recorded, tuple(chain), partial(_variants, chain, case.device)
    )


def _label(chain: Iterable[RecordedOp]) -> str:
    return ", ".join(op.label for op in chain)


def _variants(chain: list[RecordedOp], device: torch.device) -> Variants:
    program = build(chain, device)
    torch._dynamo.reset()  # noqa: SLF001  each run is a function of its own, none a recompilation
    compiled = torch.compile(program.function, fullgraph=True, dynamic=False)
    after = partial(compiled, *program.inputs)
    try:
        with torch.no_grad():
            after()
    except RuntimeError as error:
        said = " ".join(str(error).split())[:_MOST_SAID]
        raise CannotReplayError(f"torch.compile cannot compile it: {said}") from error
    return Variants(
        {"before": program.run, "after": after},
        program.reset if program.written else None,
        program.notes,
    )
