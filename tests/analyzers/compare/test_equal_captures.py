"""Captures of one program, made here and now on whatever machine this is.

Five of them make ten pairs. Nothing is tuned to the machine: a busy one widens the band. Whether a
pair of equal captures differs by chance is measured, so `make bench` runs this.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch to capture")

from changing_program import SOURCE, capture

from neuron_explorer.analyzers import Report, run
from neuron_explorer.analyzers.compare import Comparison, Verdict, compare
from neuron_explorer.reports.diff_words import verdict
from neuron_explorer.trace import Trace

pytestmark = pytest.mark.bench

CAPTURES = 5
NEAR = ("python_overhead", "hbm_bound_eager_ops", "warm_up_counted", "outlier_steps")
"""Analyzers whose thresholds a busy machine steps over; the first capture asks all of them."""
WIDEN = "        hidden = self.widen(self.norm(features))\n"
"""The line that the changed program has more work behind."""


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Trace, Report]]]:
    folder = tmp_path_factory.mktemp("equal")
    paths = [capture(folder / f"job-{n}", steps=20 + n) for n in range(CAPTURES)]
    traces = [Trace.open([path]) for path in paths]
    everything = run(traces[0])
    fired = {*NEAR, *(finding.analyzer for finding in everything.findings)}
    yield [(traces[0], everything), *((trace, run(trace, only=fired)) for trace in traces[1:])]
    for trace in traces:
        trace.close()


def test_ten_pairs_of_equal_captures_have_no_change(equal: list[tuple[Trace, Report]]) -> None:
    said = []
    for (base, before), (new, after) in combinations(equal, 2):
        seen = compare(base, new, (before, after))
        # the longer sentence is for a machine on which equal work differs by half
        said.append((verdict(seen).startswith("no change"), changes(seen)))
    assert said == [(True, [])] * 10


def changes(seen: Comparison) -> list[object]:
    """What a failure shows."""
    rows = [(row.kind, row.name, row.verdict, row.delta_ns) for row in seen.rows if row.changed]
    return [*rows, *(each.latest.title for each in seen.findings if each.counted)]


def test_added_work_is_reported_at_its_line(
    equal: list[tuple[Trace, Report]], tmp_path: Path
) -> None:
    assert WIDEN in SOURCE
    changed = SOURCE.replace(WIDEN, f"{WIDEN}        hidden = torch.tanh(hidden)\n")
    with Trace.open([capture(tmp_path / "changed", changed)]) as new:
        base, before = equal[0]
        seen = compare(base, new, (before, run(new, only=NEAR)))
    assert seen.step.verdict is Verdict.WORSE
    first = seen.of_kind("line")[0]
    assert first.pair is not None
    assert (first.verdict, first.pair.latest.text) == (Verdict.NEW, "hidden = torch.tanh(hidden)")
    # one more of three elementwise ops of the block, and of its backward
    assert seen.step.program_share is not None
    assert 0.02 < seen.step.program_share < 0.6
    names = {row.name for row in seen.of_kind("op") if row.changed and row.verdict is Verdict.NEW}
    assert "aten::tanh" in names
