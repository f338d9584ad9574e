"""A finding with what its row says beyond it, and its place in the tables that weigh savings."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from neuron_explorer.analyzers.header import Analyzer
from neuron_explorer.findings import Finding


@dataclass(frozen=True)
class Found:
    """A finding with what its row says beyond it."""

    finding: Finding
    acts_on: str
    host_low_ns: int
    """Host time that goes too: counts where the host sets the pace (ns)."""
    host_high_ns: int
    likely: float = 0.5
    """Where its saving is expected between its bounds, 0 to 1."""


def found_in(
    analyzer: Analyzer, findings: Sequence[Finding], rows: Sequence[Mapping[str, Any]]
) -> list[Found]:
    """The findings with what only the runner reads from their rows."""
    return [
        Found(
            finding,
            analyzer.acts_on,
            row.get("host_saving_low_ns") or 0,
            row.get("host_saving_high_ns") or 0,
            analyzer.likely,
        )
        for finding, row in zip(findings, rows, strict=True)
    ]


def keep_claims(local: duckdb.DuckDBPyConnection, found: Sequence[Found]) -> None:
    """Create `claims`: the events of each finding (its position) that has a saving."""
    numbers, ranks, ids = array("i"), array("i"), array("q")
    for number, each in enumerate(found):
        if each.finding.saving_high_ns:
            count = len(each.finding.event_ids)
            numbers.extend([number] * count)
            ranks.extend([each.finding.rank or 0] * count)
            ids.extend(each.finding.event_ids)
    columns = {"finding": numbers, "rank": ranks, "event_id": ids}
    arrays = [_column(values) for values in columns.values()]
    keep_table(local, "claims", pa.Table.from_arrays(arrays, names=list(columns)))


def keep_found(
    local: duckdb.DuckDBPyConnection, acts_on: Sequence[str], findings: Sequence[Finding]
) -> None:
    """Create `found`: what each finding acts on and saves, by its position."""
    values = {
        "finding": list(range(len(findings))),
        "acts_on": list(acts_on),
        "low": [finding.saving_low_ns or 0 for finding in findings],
        "high": [finding.saving_high_ns or 0 for finding in findings],
    }
    local.execute(
        "CREATE OR REPLACE TABLE found AS SELECT unnest($finding::INTEGER[]) AS finding,"
        " unnest($acts_on::VARCHAR[]) AS acts_on, unnest($low::BIGINT[]) AS low,"
        " unnest($high::BIGINT[]) AS high",
        values,
    )


def keep_table(local: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Create a table of `local` with the rows of `table`."""
    local.register("incoming", table)
    local.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
    local.unregister("incoming")


def _column(values: array[int]) -> pa.Array[Any]:
    # not pa.array: it imports pandas where there is one, for half a second
    kind = pa.int32() if values.typecode == "i" else pa.int64()
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
