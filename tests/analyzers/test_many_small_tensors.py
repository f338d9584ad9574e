"""Lists of small tensors: scalars count, and layers in a row are no list."""

from __future__ import annotations

import json
from pathlib import Path

from builders import Row, write_trace
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

GOLDEN = Path(__file__).parent / "golden" / "many_small_tensors" / "fires.jsonl"


def rows() -> list[Row]:
    found = map(json.loads, GOLDEN.read_text().splitlines())
    return [row for row in found if "metadata" not in row]


def fires(changed: list[Row], folder: Path) -> bool:
    with Trace.open([write_trace(folder / "trace.parquet", changed)]) as trace:
        return bool(run(trace, only=["many_small_tensors"]).findings)


def test_results_of_one_number_are_small_tensors(tmp_path: Path) -> None:
    scalars = [{**row, "output_shapes": [[]]} if row["kind"] == "op" else row for row in rows()]
    assert fires(scalars, tmp_path)


def test_calls_of_as_many_modules_are_no_list(tmp_path: Path) -> None:
    assert fires(rows(), tmp_path)
    layers = [
        {**row, "module": f"blocks.{place}"} if row["kind"] == "op" else row
        for place, row in enumerate(rows())
    ]
    (tmp_path / "layers").mkdir()
    assert not fires(layers, tmp_path / "layers")
