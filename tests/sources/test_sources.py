"""Share of labelled ops whose function and line are right, by how lines are found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import labelled  # noqa: E402

from neuron_explorer.collectors.capture.asked import Source  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]

SCRIPTS = sorted(labelled.CASES.glob("*.py"))
FLOORS = {"exact": (0.99, 0.99), "call": (0.99, 0.65)}
"""Least share of right functions and of right lines. Half of these ops are operators, which
call nothing: a tracer of calls knows their function only."""


def record(script: Path, source: Source) -> labelled.Score:
    config = torch._C._profiler._ExperimentalConfig(
        verbose=True, profile_all_threads=script.stem == "threads"
    )
    with profile(source=source, experimental_config=config) as session:
        labelled.execute(script)
    rows: list[dict[str, Any]] = session.trace.sql(labelled.OPS).to_pylist()
    return labelled.score(script, rows)


@pytest.mark.parametrize("source", ["exact", "call"])
def test_labelled_ops_have_the_right_line(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    total = labelled.Score()
    for script in SCRIPTS:
        if source == "exact" or script.stem not in ("threads", "own_backward"):
            total += record(script, source)
    functions, lines = FLOORS[source]
    shares = f"function {total.function_share:.2%}, line {total.line_share:.2%}"
    report = f"Python {sys.version_info[:2]}, {source}: {total.ops} ops, {shares}"
    assert total.function_share >= functions, report
    assert total.line_share >= lines, report
    assert total.dishonest == [], report


def test_the_labelled_set_is_large_enough() -> None:
    ops = sum(label.count for script in SCRIPTS for label in labelled.labels(script))
    assert len(SCRIPTS) >= 12
    assert ops >= 300
