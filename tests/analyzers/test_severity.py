"""What changes how much a finding weighs: the same golden rows, told a little more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builders import Row, op, write_trace
from neuron_explorer.analyzers import run
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

GOLDEN = Path(__file__).parent / "golden"


def rows_of(analyzer: str) -> list[Row]:
    lines = (GOLDEN / analyzer / "fires.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "metadata" not in row]


def judged(
    analyzer: str, rows: Sequence[Row], folder: Path, metadata: dict[str, Any] | None = None
) -> list[Finding]:
    with Trace.open([write_trace(folder / "trace.parquet", rows, metadata or {})]) as trace:
        return list(run(trace, only=[analyzer]).findings)


def inside(name: str, rows: list[Row]) -> list[Row]:
    """The same rows, all ops without a parent inside of one more op."""
    around = len(rows)
    placed = [
        {**row, "parent_id": row.get("parent_id", around)} if row.get("kind") == "op" else row
        for row in rows
    ]
    return [*placed, op(0, 10_000_000, name=name)]


def test_copies_that_a_recurrent_layer_makes_are_no_warning(tmp_path: Path) -> None:
    # a queue that is never empty sets the pace
    busy = {"duration_ns": 250_000}
    rows = [
        {**row, **busy} if row["layer"] == "hardware" else row for row in rows_of("layout_copies")
    ]
    assert {each.severity for each in judged("layout_copies", rows, tmp_path)} == {"warning"}
    (tmp_path / "inside").mkdir()
    found = judged("layout_copies", inside("aten::lstm", rows), tmp_path / "inside")
    assert {each.severity for each in found} == {"info"}
    assert "batch_first=False" in found[0].advice


def test_a_contraction_of_data_has_no_batch_to_grow(tmp_path: Path) -> None:
    assert judged("small_batch", rows_of("small_batch"), tmp_path)
    (tmp_path / "inside").mkdir()
    rows = inside("aten::tensordot", rows_of("small_batch"))
    assert not judged("small_batch", rows, tmp_path / "inside")


def test_recorded_lines_may_be_all_that_python_did(tmp_path: Path) -> None:
    plain = judged("python_overhead", rows_of("python_overhead"), tmp_path)
    assert "warning" in {each.severity for each in plain}
    (tmp_path / "lines").mkdir()
    capture = {"capture": {"lines": {"marks": 1_000_000, "via": "sys.settrace"}}}
    found = judged("python_overhead", rows_of("python_overhead"), tmp_path / "lines", capture)
    assert {each.severity for each in found} == {"info"}
    assert "Lines were recorded" in found[0].message
