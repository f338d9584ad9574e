"""Every analyzer against its golden folder: rows in, findings out.

`fires.jsonl` and `silent.jsonl` hold one event a line as `builders.write_trace` takes it (a link is
the number of a line, from 0); a first line `{"metadata": {...}}` replaces file metadata.
`expected.json` holds the findings of `fires.jsonl`; `pytest tests/analyzers --update-golden`
writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from builders import write_trace
from neuron_explorer.analyzers import Report, analyzers, query, run
from neuron_explorer.sandbox import check_statement
from neuron_explorer.trace import Trace

GOLDEN = Path(__file__).parent / "golden"
Fired = Callable[[str], tuple[Path, Report]]


def judge(analyzer: str, name: str, folder: Path) -> Report:
    lines = [json.loads(line) for line in (GOLDEN / analyzer / name).read_text().splitlines()]
    metadata: dict[str, Any] = lines.pop(0)["metadata"] if "metadata" in lines[0] else {}
    with Trace.open([write_trace(folder / "trace.parquet", lines, metadata)]) as trace:
        return run(trace, only=[analyzer])


@pytest.fixture(params=list(analyzers()))
def analyzer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def fired(tmp_path_factory: pytest.TempPathFactory) -> Fired:
    """The trace in which an analyzer fires, and what it says of it."""

    @cache
    def judged(analyzer: str) -> tuple[Path, Report]:
        folder = tmp_path_factory.mktemp(analyzer)
        return folder / "trace.parquet", judge(analyzer, "fires.jsonl", folder)

    return judged


def test_findings_are_the_golden_ones(
    analyzer: str, fired: Fired, request: pytest.FixtureRequest
) -> None:
    found = [asdict(finding) for finding in fired(analyzer)[1].findings]
    text = json.dumps(found, indent=2, sort_keys=True) + "\n"
    expected = GOLDEN / analyzer / "expected.json"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")
    assert found, "the golden trace shows nothing"


def test_is_silent_where_nothing_is_wrong(analyzer: str, tmp_path: Path) -> None:
    report = judge(analyzer, "silent.jsonl", tmp_path)
    assert report.ran == [analyzer]
    assert report.findings == []


def test_the_proof_of_each_finding_shows_rows(analyzer: str, fired: Fired) -> None:
    path, report = fired(analyzer)
    with Trace.open([path]) as trace:
        for finding in report.findings:
            # what the sandbox lets through, run here: a process for each would take minutes
            rows = trace.rows(check_statement(finding.sql))
            assert rows, finding.id
            # here each row is one of the units of work, or the gap before it
            if analyzer in ("hbm_bound_eager_ops", "launch_overhead", "device_idle"):
                assert len(rows) == len(finding.event_ids)


def test_evidence_is_whole_numbers_or_rounded_shares(analyzer: str, fired: Fired) -> None:
    for finding in fired(analyzer)[1].findings:
        for name, value in finding.evidence.items():
            assert not isinstance(value, float) or value == round(value, 4), name


def test_header_names_the_columns_of_the_result(analyzer: str, tmp_path: Path) -> None:
    with Trace.open([write_trace(tmp_path / "trace.parquet", [])]) as trace:
        rows = query(trace, analyzers()[analyzer])
    assert rows == [] or analyzer == "trace_health"
    assert all(list(row) == list(analyzers()[analyzer].columns) for row in rows)


def test_an_empty_trace_gives_nothing_but_its_health(tmp_path: Path) -> None:
    with Trace.open([write_trace(tmp_path / "trace.parquet", [])]) as trace:
        report = run(trace)
    assert {finding.analyzer for finding in report.findings} <= {"trace_health"}
    skipped = {skip.analyzer for skip in report.not_applicable}
    assert skipped | set(report.ran) == analyzers().keys()
    assert skipped >= analyzers().keys() - {"trace_health"}


def test_every_analyzer_has_a_golden_folder_and_no_other_exists() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == analyzers().keys()
