"""Pairs of scripts with a planted fault and without it: the analyzer names the line of the one.

`slow.py` names in its docstring the analyzer that must fire and the text of the line it must name;
on `fixed.py` that analyzer stays silent.
"""

from __future__ import annotations

import ast
import gc
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from neuron_explorer.analyzers import run
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

PAIRS = sorted(path.parent for path in Path(__file__).parent.glob("*/slow.py"))


class Fault(NamedTuple):
    """What a slow script says of itself."""

    analyzer: str
    line: int


def fault(script: Path) -> Fault:
    text = script.read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(text)) or ""
    facts = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    numbers = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() == facts["line"] and number > said.count("\n") + 1
    ]
    assert len(numbers) == 1, f"{script} has the line {facts['line']!r} at {numbers}"
    return Fault(facts["analyzer"], numbers[0])


def findings(script: Path, analyzer: str) -> list[Finding]:
    runpy.run_path(str(script), run_name="__main__")
    with Trace.open([Path("trace.parquet")]) as trace:
        return run(trace, only=[analyzer]).findings


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts write where they stand, and one freezes what is alive."""
    monkeypatch.chdir(tmp_path)
    yield
    gc.unfreeze()


@pytest.fixture(params=PAIRS, ids=lambda pair: pair.name)
def pair(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_the_slow_script_is_found_at_its_line(pair: Path) -> None:
    analyzer, line = fault(pair / "slow.py")
    found = findings(pair / "slow.py", analyzer)
    places = [(Path(each.source_file or "").name, each.source_line) for each in found]
    assert ("slow.py", line) in places
    for each in found:
        if each.saving_low_ns is not None and each.saving_high_ns is not None:
            assert 0 <= each.saving_low_ns <= each.saving_high_ns


def test_the_fixed_script_is_not(pair: Path) -> None:
    analyzer, _ = fault(pair / "slow.py")
    assert findings(pair / "fixed.py", analyzer) == []
