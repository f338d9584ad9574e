"""A loop that goes takes its backward along: the engine's nodes, and its time between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders import Row, row
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

GOLDEN = Path(__file__).parent / "golden"


def with_backward(analyzer: str, node_ns: int, gap_ns: int) -> list[Row]:
    """The golden loop on a CPU, and a node of the backward for each call that does work."""
    lines = (GOLDEN / analyzer / "fires.jsonl").read_text().splitlines()
    rows: list[Row] = [each for each in map(json.loads, lines) if "metadata" not in each]
    rows = [{**each, "step": 0} for each in rows if each["kind"] == "op"]
    forward = [place for place, each in enumerate(rows) if each.get("family") != "view"]
    begin = 10 * max(int(str(each["start_ns"])) for each in rows)
    name = "autograd::engine::evaluate_function: SumBackward0"
    for number, place in enumerate(forward):
        start = begin + number * (node_ns + gap_ns)
        columns = {"name": name, "forward_id": place, "phase": "backward", "pid": 1, "tid": 2}
        rows.append(row("framework", "autograd", start, node_ns, **columns))
    return rows


@pytest.mark.parametrize("analyzer", ["for_loop_indexing", "many_small_tensors"])
def test_nodes_of_the_backward_count_with_the_gaps_before_them(
    analyzer: str, open_trace: Callable[..., Trace]
) -> None:
    def taken(node_ns: int, gap_ns: int) -> tuple[int, int]:
        (found,) = run(open_trace(with_backward(analyzer, node_ns, gap_ns)), [analyzer]).findings
        time_ns = found.evidence["taken_ns"]
        assert isinstance(time_ns, int)
        assert (found.saving_high_ns or 0) <= time_ns
        return time_ns, len(found.event_ids)

    short, calls = taken(1_000, 0)
    longer, _ = taken(5_000, 0)
    spaced, _ = taken(5_000, 2_000)
    far, _ = taken(5_000, 900_000)
    # a node for each call of the loop; the first of all has none before it
    assert (longer - short) / 4_000 == calls
    assert (spaced - longer) / 2_000 in (calls, calls - 1)
    assert (far - longer) / 100_000 in (calls, calls - 1)  # longer gaps are not the engine's
