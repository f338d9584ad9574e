"""What a misaligned product could reach is known from aligned ones of the same trace only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

OpenTrace = Callable[..., Trace]
FIRES = Path(__file__).parent / "golden" / "misaligned_matmul" / "fires.jsonl"
ALIGNED = "[[8192, 1024], [1024, 4096]]"


def test_without_an_aligned_product_the_saving_is_unknown(open_trace: OpenTrace) -> None:
    rows = [json.loads(line) for line in FIRES.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if str(row.get("input_shapes")) == ALIGNED:
            row["input_shapes"] = [[8192, 1023], [1023, 4096]]
    found = run(open_trace(rows), only=["misaligned_matmul"]).findings
    assert found
    assert {(f.saving_low_ns, f.saving_high_ns) for f in found} == {(None, None)}
