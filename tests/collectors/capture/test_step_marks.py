"""Without a schedule, each `step()` ends a step."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import torch

import neuron_explorer


def test_ops_belong_to_the_step_they_ran_in(tmp_path: Path) -> None:
    with neuron_explorer.profile(output=tmp_path / "trace.parquet") as session:
        for _ in range(3):
            torch.ones(3).relu()
            session.step()
        torch.ones(3).tanh()
    ops = session.trace.sql(
        "SELECT name, step FROM ops WHERE name IN ('aten::relu', 'aten::tanh') ORDER BY start_ns"
    ).to_pylist()
    assert [(op["name"], op["step"]) for op in ops] == [
        ("aten::relu", 0),
        ("aten::relu", 1),
        ("aten::relu", 2),
        ("aten::tanh", None),
    ]
    steps = session.trace.sql("SELECT step, start_ns, end_ns FROM steps").to_pylist()
    assert [step["step"] for step in steps] == [0, 1, 2]
    assert all(a["end_ns"] == b["start_ns"] for a, b in pairwise(steps))


def test_without_step_there_is_none(tmp_path: Path) -> None:
    with neuron_explorer.profile(output=tmp_path / "trace.parquet") as session:
        torch.ones(3).relu()
    assert session.trace.sql("FROM steps").num_rows == 0
