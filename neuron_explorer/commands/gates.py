"""Gates of `--fail-on`: what must not happen, for continuous integration.

A gate on a figure fails where the figure grew by more than its limit and by more than chance. One
that cannot be judged, because the figure or its noise is unknown, is said and ends with the code of
data that is not to be trusted: a gate that silently passes guards nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from neuron_explorer.analyzers import Report, analyzers
from neuron_explorer.analyzers.compare import Comparison, Metric, Verdict
from neuron_explorer.analyzers.compare.metrics import BYTES, COUNT, NS, SHARE
from neuron_explorer.errors import ExitCode, UsageError
from neuron_explorer.findings import SEVERITIES, Finding
from neuron_explorer.reports import diff_words, formats
from neuron_explorer.reports.evidence import where

METRICS: Mapping[str, str] = {
    "step_time": NS,
    "same_work": COUNT,
    "device_time": NS,
    "idle_share": SHARE,
    "launches": COUNT,
    "kernels": COUNT,
    "syncs": COUNT,
    "peak_memory": BYTES,
    "compilations": COUNT,
    "recompilations": COUNT,
    "graph_breaks": COUNT,
    "new_findings": COUNT,
    **{f"new_{severity}": COUNT for severity in SEVERITIES},
}
"""Figures that a gate may be put on, and their units."""

_FORM = re.compile(r"\s*([a-z_]+)\s*>\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z%]*)\s*")
_UNITS = {
    NS: {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9},
    BYTES: {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9},
    SHARE: {},
    COUNT: {"": 1.0},
}
"""Of an absolute limit, by the unit of the figure."""


class Outcome(StrEnum):
    """What became of a gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Gate:
    """`step_time>5%`: the most that a figure may grow."""

    text: str
    metric: str
    limit: float
    relative: bool
    """Whether the limit is a share of the base; of a share itself it is points, 0 to 1."""


@dataclass(frozen=True)
class Judged:
    """A gate and what became of it."""

    gate: Gate
    outcome: Outcome
    why: str
    """In one line."""
    by_noise: bool = False
    """Whether it passed only as chance may make such a difference."""

    def as_data(self) -> dict[str, object]:
        return {"gate": self.gate.text, "outcome": self.outcome, "why": self.why}


def read_gates(given: Iterable[str]) -> list[Gate]:
    """Gates as a person types them, several with commas between.

    Raises:
        UsageError: A text is no gate; the message lists the figures there are.
    """
    texts = [text.strip() for each in given for text in each.split(",")]
    return [_gate(text) for text in texts]


def _gate(text: str) -> Gate:
    found = _FORM.fullmatch(text)
    if found is None or found[1] not in METRICS:
        wrong = "names no figure" if found is None else f"names no figure: {found[1]!r} is none"
        raise UsageError(
            f"--fail-on {text!r} {wrong}",
            hint=f"write it as 'step_time>5%'; there are: {', '.join(METRICS)}",
        )
    unit = METRICS[found[1]]
    if found[3] == "%":
        return Gate(text, found[1], float(found[2]) / 100, relative=True)
    if found[3] not in _UNITS[unit]:
        known = ["%", *(each or "a plain number" for each in _UNITS[unit])]
        wrong = f"is not in {found[3]}" if found[3] else "needs a unit"
        raise UsageError(
            f"--fail-on {text!r}: the limit of {found[1]} {wrong}",
            hint=f"give it in {', '.join(known)}",
        )
    return Gate(text, found[1], float(found[2]) * _UNITS[unit][found[3]], relative=False)


def judge(gates: Sequence[Gate], comparison: Comparison) -> list[Judged]:
    """What becomes of each gate."""
    known = {metric.name: metric for metric in comparison.metrics}
    return [judge_metric(gate, known[gate.metric]) for gate in gates]


def judge_metric(gate: Gate, metric: Metric) -> Judged:
    """What becomes of a gate on this figure."""
    if metric.delta is None or metric.base is None:
        return Judged(gate, Outcome.UNKNOWN, f"{metric.name} is unknown: {metric.missing}")
    said = _said(metric)
    if metric.delta <= _allowed(gate, metric):
        return Judged(gate, Outcome.PASSED, said)
    if metric.verdict is Verdict.SAME and not metric.name.startswith("new_"):
        noise = formats.UNKNOWN if metric.band is None else _in_unit(metric, metric.band)
        why = f"{said}, which is within the noise ({noise})"
        return Judged(gate, Outcome.PASSED, why, by_noise=True)
    if metric.verdict is Verdict.UNKNOWN:
        return Judged(gate, Outcome.UNKNOWN, f"{said}, but what is noise is unknown")
    return Judged(gate, Outcome.FAILED, f"{said}, more than {gate.text.partition('>')[2].strip()}")


def _allowed(gate: Gate, metric: Metric) -> float:
    """How much the figure may grow, in its unit."""
    if gate.relative and metric.unit != SHARE:
        return gate.limit * (metric.base or 0.0)
    return gate.limit


def _said(metric: Metric) -> str:
    change = diff_words.metric_change(metric)
    values = " -> ".join(
        diff_words.metric_value(value, metric.unit) for value in (metric.base, metric.new)
    )
    return f"{metric.name} {values}{f' ({change})' if change else ''}"


def _in_unit(metric: Metric, value: float) -> str:
    if metric.unit == SHARE:
        return f"{value * 100:.1f} points"
    return diff_words.metric_value(value, metric.unit)


@dataclass(frozen=True)
class FindingGate:
    """What `analyze --fail-on` names: severities, and analyzers."""

    text: str
    severities: tuple[str, ...]
    """A severity stands for itself and for all that are more severe."""
    analyzers: tuple[str, ...]


def finding_gate(given: Iterable[str], only: Sequence[str] | None) -> FindingGate | None:
    """The gate of `analyze`; None where no one asks for one.

    Args:
        given: What `--fail-on` was given.
        only: Analyzers that are to run; None = all.

    Raises:
        UsageError: A name is neither a severity nor an analyzer, or that analyzer will not run.
    """
    names = [name.strip() for text in given for name in text.split(",")]
    if not names:
        return None
    for name in names:
        if name not in SEVERITIES and name not in analyzers():
            raise UsageError(
                f"--fail-on {name!r} names neither a severity nor an analyzer",
                hint=f"there are: {', '.join((*SEVERITIES, *analyzers()))}",
            )
        if name not in SEVERITIES and only is not None and name not in only:
            raise UsageError(f"--fail-on {name} never fails: --only leaves that analyzer out")
    least = max((SEVERITIES.index(name) + 1 for name in names if name in SEVERITIES), default=0)
    named = tuple(name for name in names if name not in SEVERITIES)
    return FindingGate(",".join(names), SEVERITIES[:least], named)


def judge_findings(gate: FindingGate, report: Report) -> tuple[Outcome, str]:
    """What becomes of the gate, and why in one line.

    An analyzer that could not judge the trace has not passed.
    """
    found = [
        each
        for each in report.findings
        if each.severity in gate.severities or each.analyzer in gate.analyzers
    ]
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        return Outcome.FAILED, f"{_headline(found[0])}{more}"
    for skipped in report.not_applicable:
        if skipped.analyzer in gate.analyzers:
            return Outcome.UNKNOWN, f"{skipped.analyzer} could not judge: {skipped.reason}"
    return Outcome.PASSED, ""


def _headline(finding: Finding) -> str:
    at = where(finding)
    place = f" at {at}" if at else ""
    return f"{finding.severity} {finding.analyzer}{place}: {finding.title}"


def combined(outcomes: Iterable[Outcome], *, trusted: bool) -> ExitCode:
    """Exit code of gates: they count on data that can be trusted only.

    One that failed counts more than one that is unknown.
    """
    found = set(outcomes)
    if not trusted:
        return ExitCode.UNTRUSTED
    if Outcome.FAILED in found:
        return ExitCode.GATE
    return ExitCode.UNTRUSTED if Outcome.UNKNOWN in found else ExitCode.OK
