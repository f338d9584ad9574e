"""Results lie beside the trace, and are known to belong to it or not. No torch is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_ops import chain, two_runs

from builders import write_trace
from neuron_explorer.analyzers import run
from neuron_explorer.analyzers.verify.results import STALE, keep, results_path, with_results
from neuron_explorer.errors import OutputError, TraceError
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

RESULT = {"verdict": "confirmed", "why": None}
CHAINS = "compile_opportunities"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.parquet", two_runs())


def _finding(path: Path) -> Finding:
    with Trace.open([path]) as trace:
        (found,) = run(trace, only=[CHAINS]).findings
    return found


def test_a_result_shows_up_in_the_findings_and_the_trace_stays_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    finding = _finding(path)
    assert finding.verified is None
    assert keep(path, finding, RESULT) == path.with_name("trace.verified.json")
    verified = _finding(path).verified
    assert verified is not None
    assert verified["verdict"] == "confirmed"
    assert path.read_bytes() == before
    with Trace.open([path]) as trace:
        assert {f.id: f.verified for f in trace.findings()}[finding.id] == verified


def test_results_add_up_and_replace_each_other(path: Path) -> None:
    finding = _finding(path)
    keep(path, finding, RESULT)
    keep(path, replace(finding, id="other-1"), RESULT)
    keep(path, finding, RESULT | {"verdict": "not confirmed"})
    kept = json.loads(results_path(path).read_text("utf-8"))["findings"]
    assert {id_: result["verdict"] for id_, result in kept.items()} == {
        finding.id: "not confirmed",
        "other-1": "confirmed",
    }
    assert sorted(path.parent.iterdir()) == [path, results_path(path)]  # no draft is left


def test_results_of_another_trace_of_the_same_name_are_stale(path: Path) -> None:
    keep(path, _finding(path), RESULT)
    write_trace(path, chain(0))
    verified = _finding(path).verified
    assert verified is not None
    assert verified["verdict"] == STALE
    assert "another trace of this name" in str(verified["why"])


def test_the_next_result_drops_those_of_another_trace(path: Path) -> None:
    finding = _finding(path)
    keep(path, replace(finding, id="other-1"), RESULT)
    write_trace(path, chain(0))
    keep(path, finding, RESULT)
    assert list(json.loads(results_path(path).read_text("utf-8"))["findings"]) == [finding.id]


def test_results_measured_for_another_claim_are_stale(path: Path) -> None:
    finding = _finding(path)
    keep(path, replace(finding, saving_high_ns=1), RESULT)
    verified = _finding(path).verified
    assert verified is not None
    assert verified["verdict"] == STALE
    assert "another claim" in str(verified["why"])


def test_findings_without_a_result_stay_as_they_are(path: Path) -> None:
    finding = _finding(path)
    keep(path, replace(finding, id="other-1"), RESULT)
    with Trace.open([path]) as trace:
        assert with_results(trace, [finding]) == [finding]


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "neuron_explorer.verified/99"}'])
def test_a_damaged_file_is_said_with_what_to_do(path: Path, text: str) -> None:
    results_path(path).write_text(text, "utf-8")
    with pytest.raises(TraceError, match=r"trace\.verified\.json") as caught:
        _finding(path)
    assert "verify the trace again" in caught.value.hint


def test_a_folder_that_cannot_be_written_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = _finding(path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)  # root may write anywhere
    with pytest.raises(OutputError, match=r"trace\.verified\.json cannot be written: Permission"):
        keep(path, finding, RESULT)
    assert not results_path(path).exists()
