from __future__ import annotations

import pytest

from neuron_explorer.analyzers import NotApplicable, Report
from neuron_explorer.analyzers.compare import Metric, Verdict
from neuron_explorer.commands.gates import (
    METRICS,
    FindingGate,
    Judged,
    Outcome,
    combined,
    finding_gate,
    judge_findings,
    judge_metric,
    read_gates,
)
from neuron_explorer.errors import ExitCode, UsageError
from neuron_explorer.findings import Finding


def metric(
    name: str = "step_time",
    base: float | None = 10e6,
    new: float | None = 12e6,
    verdict: Verdict = Verdict.WORSE,
    band: float | None = 0.1e6,
) -> Metric:
    return Metric(name, METRICS[name], "", base, new, band, verdict, missing="nobody recorded it")


def judged(text: str, figure: Metric) -> Judged:
    (gate,) = read_gates([text])
    return judge_metric(gate, figure)


def test_several_gates_in_one_option_or_in_several() -> None:
    gates = read_gates(["step_time>5%, syncs>0", "peak_memory>1.5GB"])
    assert [(gate.metric, gate.limit, gate.relative) for gate in gates] == [
        ("step_time", 0.05, True),
        ("syncs", 0, False),
        ("peak_memory", 1.5e9, False),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step_tme>5%", "'step_tme' is none"),
        ("step_time", "names no figure"),
        ("step_time<5%", "names no figure"),
        ("step_time>-5%", "names no figure"),
        ("", "names no figure"),
        ("step_time>5", "needs a unit"),
        ("step_time>5GB", "is not in GB"),
        ("idle_share>5ms", "is not in ms"),
        ("syncs>5ms", "is not in ms"),
    ],
)
def test_what_is_no_gate_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        read_gates([text])
    assert raised.value.exit_code is ExitCode.USAGE
    if "names no figure" in said or "is none" in said:
        assert all(name in raised.value.hint for name in METRICS)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("step_time>5%", Outcome.FAILED),
        ("step_time>19.9%", Outcome.FAILED),
        ("step_time>20%", Outcome.PASSED),
        ("step_time>1.9ms", Outcome.FAILED),
        ("step_time>2ms", Outcome.PASSED),
    ],
)
def test_a_limit_is_what_a_figure_may_grow(text: str, outcome: Outcome) -> None:
    assert judged(text, metric()).outcome is outcome


def test_a_failure_says_the_figure_both_values_and_the_limit_in_one_line() -> None:
    why = judged("step_time>5%", metric()).why
    assert why == "step_time 10 ms -> 12 ms (+20.0 %), more than 5%"


def test_what_became_less_never_fails() -> None:
    assert judged("step_time>0%", metric(new=8e6, verdict=Verdict.BETTER)).outcome is Outcome.PASSED


def test_growth_within_the_noise_passes_and_says_so() -> None:
    said = judged("step_time>5%", metric(verdict=Verdict.SAME, band=3e6))
    assert (said.outcome, said.by_noise) == (Outcome.PASSED, True)
    assert "within the noise (3 ms)" in said.why


@pytest.mark.parametrize(
    "figure",
    [
        metric(base=None),
        metric(new=None),
        metric(base=None, new=None),
    ],
)
def test_a_figure_that_is_unknown_is_no_pass(figure: Metric) -> None:
    said = judged("step_time>5%", figure)
    assert said.outcome is Outcome.UNKNOWN
    assert said.why == "step_time is unknown: nobody recorded it"


def test_growth_without_a_band_is_no_pass_either() -> None:
    said = judged("step_time>5%", metric(verdict=Verdict.UNKNOWN, band=None))
    assert said.outcome is Outcome.UNKNOWN
    assert "noise is unknown" in said.why


def test_a_share_grows_by_points() -> None:
    idle = metric("idle_share", 0.10, 0.16, band=0.0)
    assert judged("idle_share>5%", idle).outcome is Outcome.FAILED
    assert judged("idle_share>7%", idle).outcome is Outcome.PASSED
    assert "(+6.0 points)" in judged("idle_share>5%", idle).why


def test_anything_more_than_none_fails_a_relative_gate() -> None:
    assert judged("syncs>50%", metric("syncs", 0.0, 1.0, band=0.0)).outcome is Outcome.FAILED


def test_a_new_finding_counts_whatever_the_noise() -> None:
    fresh = metric("new_critical", 0.0, 1.0, Verdict.SAME, 0.0)
    assert judged("new_critical>0", fresh).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("outcomes", "trusted", "code"),
    [
        ([], True, ExitCode.OK),
        ([Outcome.PASSED], True, ExitCode.OK),
        ([Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN], True, ExitCode.GATE),
        ([Outcome.PASSED, Outcome.UNKNOWN], True, ExitCode.UNTRUSTED),
        ([Outcome.FAILED], False, ExitCode.UNTRUSTED),
        ([], False, ExitCode.UNTRUSTED),
    ],
)
def test_exit_codes(outcomes: list[Outcome], trusted: bool, code: ExitCode) -> None:  # noqa: FBT001
    assert combined(outcomes, trusted=trusted) is code


def finding(analyzer: str, severity: str) -> Finding:
    return Finding(f"{analyzer}-1", analyzer, severity, "Too much of it", "", "", None, "m.py", 3)


def test_a_severity_stands_for_what_is_more_severe_too() -> None:
    gate = finding_gate(["warning,device_idle"], None)
    assert gate == FindingGate("warning,device_idle", ("critical", "warning"), ("device_idle",))
    assert finding_gate([], None) is None


def test_a_name_that_is_neither_severity_nor_analyzer_is_refused() -> None:
    with pytest.raises(UsageError, match="neither a severity nor an analyzer") as raised:
        finding_gate(["device_idel"], None)
    assert "device_idle" in raised.value.hint


def test_a_gate_on_an_analyzer_that_does_not_run_is_refused() -> None:
    with pytest.raises(UsageError, match="--only leaves that analyzer out"):
        finding_gate(["device_idle"], ["graph_breaks"])


@pytest.mark.parametrize(
    ("names", "outcome"),
    [
        ("critical", Outcome.PASSED),
        ("warning", Outcome.FAILED),
        ("info", Outcome.FAILED),
        ("host_syncs", Outcome.FAILED),
        ("graph_breaks", Outcome.UNKNOWN),
        ("device_idle", Outcome.PASSED),
    ],
)
def test_findings_fail_by_severity_and_by_analyzer(names: str, outcome: Outcome) -> None:
    skipped = [NotApplicable("graph_breaks", "nothing was compiled")]
    report = Report([finding("host_syncs", "warning")], skipped, ["host_syncs", "device_idle"], {})
    gate = finding_gate([names], None)
    assert gate is not None
    found, why = judge_findings(gate, report)
    assert found is outcome
    if outcome is Outcome.FAILED:
        assert why == "warning host_syncs at m.py:3: Too much of it"
    if outcome is Outcome.UNKNOWN:
        assert why == "graph_breaks could not judge: nothing was compiled"
