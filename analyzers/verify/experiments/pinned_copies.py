"""Copies to the device: from pageable memory, and from pinned memory without waiting."""

from __future__ import annotations

from functools import partial

import torch

from neuron_explorer.analyzers.verify.plans import Case, Plan, Setup, Variants
from neuron_explorer.analyzers.verify.recorded import CannotReplayError

ANALYZERS = ("blocking_copies",)

_COPIES = """
SELECT
    write_bytes,
    count(*) AS copies,
    sum(duration_ns)::BIGINT AS duration_ns
FROM work
WHERE rank = $rank AND event_id IN (SELECT unnest($ids::BIGINT[])) AND write_bytes > 0
GROUP BY write_bytes
"""


def plan(case: Case) -> Plan:
    """Each size of copy.

    Raises:
        CannotReplayError: The device is no CUDA one, or the sizes are not recorded.
    """
    if case.device.type != "cuda":
        raise CannotReplayError(f"pinned memory helps a CUDA device, and this is {case.device}")
    ids = list(case.finding.event_ids)
    rows = case.trace.sql(_COPIES, {"rank": case.rank, "ids": ids}).to_pylist()
    if not rows:
        raise CannotReplayError("how many bytes were copied is not recorded")
    setups = [
        Setup(
            f"{row['write_bytes']:,} bytes",
            row["copies"],
            row["duration_ns"],
            (),
            partial(_variants, row["write_bytes"], case.device),
        )
        for row in rows
    ]
    claimed = sum(setup.recorded_ns for setup in setups)
    return Plan("pageable", "pinned, non_blocking", claimed, setups)


def _variants(size: int, device: torch.device) -> Variants:
    pageable = torch.zeros(size, dtype=torch.uint8)
    pinned = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(size, dtype=torch.uint8, device=device)
    return Variants(
        {
            "before": lambda: target.copy_(pageable),
            "after": lambda: target.copy_(pinned, non_blocking=True),
        }
    )
