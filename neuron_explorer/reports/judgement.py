"""What `analyze` found, with what it needs to be read: the one record all renderers take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuron_explorer.analyzers import NotApplicable, Report
from neuron_explorer.errors import ExitCode
from neuron_explorer.findings import SEVERITIES, Combined, Finding
from neuron_explorer.reports.overview import Overview


@dataclass(frozen=True)
class Judgement:
    overview: Overview
    report: Report
    limit: int | None = None
    """How many findings a reader asked for; None = all."""

    @property
    def findings(self) -> Sequence[Finding]:
        """In the order the analyzers' runner gave them."""
        return self.report.findings

    @property
    def combined(self) -> Sequence[Combined]:
        """What all findings are worth together, shown or not: measured and modelled apart."""
        return self.report.combined

    @property
    def not_applicable(self) -> Sequence[NotApplicable]:
        """Analyzers that this trace has no answer for, by name."""
        return sorted(self.report.not_applicable)

    def not_applicable_by_reason(self) -> dict[str, list[str]]:
        """Names of the analyzers that lack the same thing, by what they lack."""
        found: dict[str, list[str]] = {}
        for skip in self.not_applicable:
            found.setdefault(skip.reason, []).append(skip.analyzer)
        return found

    @property
    def shown(self) -> Sequence[Finding]:
        return self.findings[: self.limit]

    @property
    def hidden(self) -> int:
        return len(self.findings) - len(self.shown)

    @property
    def exit_code(self) -> ExitCode:
        return self.overview.exit_code if self.report.trusted else ExitCode.UNTRUSTED

    def by_severity(self) -> dict[str, int]:
        """How many findings of each severity, most severe first."""
        return {s: sum(f.severity == s for f in self.findings) for s in SEVERITIES}
