from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from neuron_explorer.trace import Trace
from neuron_explorer.tui.opening import memory_bytes


class Told:
    """The one thing that is asked of a trace here."""

    def __init__(self, *events: int | None) -> None:
        self.metadata = {
            Path(str(rank)): {"summary": {"events": count}} if count is not None else {}
            for rank, count in enumerate(events)
        }


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], 200_000_000),
        ([None], 200_000_000),
        ([100], 200_000_000),
        ([740_000], 222_000_000),
        ([1_000_000, None, 2_000_000], 900_000_000),
        ([10**9], 2 * 1024**3),
    ],
)
def test_duckdb_gets_as_much_memory_as_the_events_of_all_ranks_need(
    events: list[int | None], expected: int
) -> None:
    assert memory_bytes(cast("Trace", Told(*events))) == expected


def test_a_bound_set_before_the_first_query_holds(tiny: Path) -> None:
    with Trace.open([tiny]) as trace:
        trace.memory_limit_bytes = 150 * 10**6
        row = trace.sql("SELECT current_setting('memory_limit') AS bound").to_pylist()[0]
    assert row["bound"].startswith("143.0 MiB")
