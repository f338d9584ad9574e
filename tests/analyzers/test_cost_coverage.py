"""How much of the hardware time of real traces has a cost once the product has imported them.

Work whose launch the profiler never recorded has no op, so nothing can be known of it beyond its
name and time; `linked` leaves it out. vLLM's fused experts and paged attention reach their weights
and caches through a handle, which leaves b200-eager without most of its arithmetic.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from neuron_explorer.collectors.importers import import_file
from neuron_explorer.trace import Trace

SHARES = """
WITH judged AS (
    SELECT
        duration_ns,
        bytes IS NOT NULL AS known,
        bytes IS NOT NULL OR cost_note IS NOT NULL AS explained,
        flops IS NOT NULL AS counted,
        cost_note IS DISTINCT FROM 'no_op' AS linked,
        coalesce(
            family IN ('matmul', 'convolution', 'attention'),
            regexp_matches(name, '(?i)gemm|cijk|xmma|cutlass|nvjet|bmm_|conv|flash|fmha|attn')
            AND NOT regexp_matches(name, '(?i)elementwise|nccl|triton_|reduce_kernel')
        ) AS heavy
    FROM work
)

SELECT
    sum(duration_ns) FILTER (explained) / sum(duration_ns) AS explained,
    sum(duration_ns) FILTER (known AND linked) / sum(duration_ns) FILTER (linked) AS known,
    sum(duration_ns) FILTER (heavy AND linked AND counted)
    / sum(duration_ns) FILTER (heavy AND linked) AS counted,
    sum(duration_ns) FILTER (heavy AND counted) / sum(duration_ns) FILTER (heavy) AS counted_of_all
FROM judged
"""


class Floor(NamedTuple):
    """Least shares of hardware time."""

    known: float
    """Of linked time: bytes are known."""
    counted: float
    """Of linked GEMM, convolution and attention time: FLOPs are known."""
    counted_of_all: float
    """The same with work whose launch was not recorded, by the names of the kernels."""


FLOORS = {
    "mi300-diffusion-sd35.json.gz": Floor(0.999, 1, 1),
    "mi300-resnet-checkpointing.json.gz": Floor(0.998, 1, 0.869),
    "b200-eager.json.gz": Floor(0.436, 0.106, 0.106),
    "h100-qwen-0.5b.json.gz": Floor(1, 1, 0.695),
    "b200-moe-forward-rank0of2.json": Floor(0.963, 1, 1),
}


@pytest.mark.parametrize("name", FLOORS)
def test_share_of_hardware_time_with_a_cost(name: str, traces: Path, tmp_path: Path) -> None:
    import_file(traces / "kineto" / name, tmp_path / "trace.parquet")
    with Trace.open([tmp_path / "trace.parquet"]) as trace:
        (shares,) = trace.sql(SHARES).to_pylist()
    assert shares["explained"] == 1
    measured = Floor(*(shares[key] for key in Floor._fields))
    assert all(share >= floor for share, floor in zip(measured, FLOORS[name], strict=True))
