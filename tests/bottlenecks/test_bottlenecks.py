"""The labelled set: analyzers name the lines of slow scripts and leave the fixed ones alone.

What else it holds, and the gains, are scored by `make score`: see README.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pairs import Pair, healthy, judge, one_thread, pairs

HERE = [pair for pair in pairs() if not pair.heavy and not pair.name.startswith("dry_run_")]
DRY = [pair for pair in pairs() if pair.name.startswith("dry_run_")]


@pytest.mark.parametrize("pair", HERE, ids=lambda pair: pair.name)
def test_the_slow_script_is_found_at_its_line_and_the_fixed_one_is_not(pair: Pair) -> None:
    check(pair)


def check(pair: Pair) -> None:
    names = [label.analyzer for label in pair.labels]
    with one_thread():
        slow = judge(pair.slow, names)
        assert [label for label in pair.labels if not slow.found(pair.slow, label)] == []
        for each in slow.report.findings:
            if each.saving_low_ns is not None and each.saving_high_ns is not None:
                assert 0 <= each.saving_low_ns <= each.saving_high_ns
        assert judge(pair.fixed, names).report.findings == []


def test_the_dry_run_device_has_its_pairs_too() -> None:
    """In a process of their own: the device stays registered in the one that made it."""
    code = "from test_bottlenecks import *\nfor pair in DRY: check(pair)"
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmarks")]
    start = f"import sys; sys.path[:0] = {paths!r}\n{code}"
    run = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


def test_the_set_is_as_large_as_promised() -> None:
    assert len(pairs()) >= 30
    assert len({label.analyzer for pair in pairs() for label in pair.labels}) >= 20
    assert len(healthy()) >= 10
