"""Runs the analyzers on a trace and ranks what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import duckdb
import pyarrow as pa

from neuron_explorer.analyzers.header import Analyzer, parse
from neuron_explorer.analyzers.needs import NEEDS
from neuron_explorer.analyzers.rows import Facts, to_finding
from neuron_explorer.analyzers.sources import SourceTexts
from neuron_explorer.errors import AnalyzerError, QueryError
from neuron_explorer.findings import SEVERITIES, Finding
from neuron_explorer.trace import Trace

Params = Mapping[str, int | float | str]


class NotApplicable(NamedTuple):
    """An analyzer that could not judge this trace, and why."""

    analyzer: str
    reason: str


@dataclass(frozen=True)
class Report:
    """Everything the analyzers have to say about a trace."""

    findings: list[Finding]
    """Ranked: what makes the trace unfit first, then by expected saving."""
    not_applicable: list[NotApplicable]
    ran: list[str]
    """Analyzers that judged the trace, whether they found something or not."""
    params: dict[str, dict[str, int | float | str]]
    """The thresholds used, by analyzer."""

    @property
    def trusted(self) -> bool:
        """Whether the trace is fit to judge: no critical finding of a health analyzer."""
        health = {name for name, analyzer in analyzers().items() if analyzer.health}
        return not any(f.severity == "critical" and f.analyzer in health for f in self.findings)


@cache
def analyzers() -> dict[str, Analyzer]:
    """Every analyzer by id, in order of id; each `.sql` file of this package is one.

    Raises:
        AnalyzerError: A file does not follow the format.
    """
    found = [
        parse(entry.name, entry.read_text("utf-8"))
        for entry in files("neuron_explorer.analyzers").iterdir()
        if entry.name.endswith(".sql")
    ]
    return {analyzer.id: analyzer for analyzer in sorted(found, key=lambda each: each.id)}


def run(trace: Trace, only: Iterable[str] | None = None, params: Params | None = None) -> Report:
    """Run the analyzers on a trace.

    Args:
        trace: What to judge.
        only: Ids of the analyzers to run; all when None.
        params: Thresholds to use instead of the defaults, as `analyzer.name`, or as `name` for
            every analyzer that has one of that name.

    Raises:
        AnalyzerError: An analyzer or a threshold is unknown, or an analyzer does not run.
    """
    chosen = _choose(only)
    used = _params(chosen, params or {})
    met = _checker(trace)
    facts = Facts(SourceTexts(trace), _busy_by_rank(trace))
    findings: list[Finding] = []
    skipped: list[NotApplicable] = []
    for analyzer in chosen:
        missing = [NEEDS[need].reason for need in analyzer.needs if not met(need)]
        if missing:
            skipped.append(NotApplicable(analyzer.id, missing[0]))
            continue
        findings += _findings_of(trace, analyzer, used[analyzer.id], facts)
    not_run = {skip.analyzer for skip in skipped}
    ran = [analyzer.id for analyzer in chosen if analyzer.id not in not_run]
    return Report(rank_findings(findings), skipped, ran, used)


def query(trace: Trace, analyzer: Analyzer, params: Params | None = None) -> pa.Table:
    """The result of one analyzer, columns in the order of its header.

    Raises:
        AnalyzerError: The query does not run, or gives other columns than its header names.
    """
    defaults = {name: param.default for name, param in analyzer.params.items()}
    try:
        table = trace.sql(analyzer.sql, defaults | dict(params or {}))
    except (duckdb.Error, QueryError) as error:
        raise AnalyzerError(f"analyzer {analyzer.id} failed: {error}") from error
    if set(table.column_names) != analyzer.columns.keys():
        raise AnalyzerError(
            f"analyzer {analyzer.id} gives the columns {sorted(table.column_names)},"
            f" its header names {sorted(analyzer.columns)}"
        )
    return table.select(list(analyzer.columns))


def _findings_of(trace: Trace, analyzer: Analyzer, params: Params, facts: Facts) -> list[Finding]:
    rows = query(trace, analyzer, params).to_pylist()
    found = [to_finding(analyzer, row, facts) for row in rows]
    if len({finding.id for finding in found}) < len(found):
        raise AnalyzerError(
            f"analyzer {analyzer.id} gives two rows with the same {', '.join(analyzer.key)}"
        )
    return found


def rank_findings(findings: Iterable[Finding]) -> list[Finding]:
    """What makes the trace unfit first, then the largest expected saving, then device time.

    A saving that is unknown comes after every known one; what is only missing from the trace
    comes last. The order is total.
    """
    health = {name for name, analyzer in analyzers().items() if analyzer.health}

    def order(finding: Finding) -> tuple[int | str, ...]:
        severity = SEVERITIES.index(finding.severity)
        saving, device = finding.saving_high_ns or 0, finding.device_time_ns or 0
        group = 1 if finding.analyzer not in health else 0 if severity == 0 else 2
        return (group, -saving, -device, severity, finding.analyzer, finding.id)

    return sorted(findings, key=order)


def _choose(only: Iterable[str] | None) -> list[Analyzer]:
    known = analyzers()
    wanted = list(known) if only is None else list(only)
    for name in wanted:
        if name not in known:
            raise AnalyzerError(
                f"there is no analyzer {name!r}", hint=f"There are: {', '.join(known)}."
            )
    return [known[name] for name in sorted(set(wanted))]


def _params(chosen: list[Analyzer], given: Params) -> dict[str, dict[str, int | float | str]]:
    used = {a.id: {name: param.default for name, param in a.params.items()} for a in chosen}
    # a bare name first, so that one with its analyzer's name wins
    for key in sorted(given, key=lambda name: "." in name):
        owner, _, name = key.rpartition(".")
        takers = [values for id_, values in used.items() if name in values and owner in ("", id_)]
        if not takers:
            known = [f"{id_}.{name}" for id_, values in used.items() for name in values]
            raise AnalyzerError(
                f"no analyzer has a threshold {key!r}", hint=f"There are: {', '.join(known)}."
            )
        for values in takers:
            values[name] = given[key]
    return used


def _checker(trace: Trace) -> Callable[[str], bool]:
    answers: dict[str, bool] = {}

    def met(need: str) -> bool:
        if need not in answers:
            answers[need] = trace.sql(NEEDS[need].check).num_rows > 0
        return answers[need]

    return met


def _busy_by_rank(trace: Trace) -> dict[int, int]:
    rows = trace.sql("SELECT rank, sum(busy_ns)::BIGINT AS busy_ns FROM devices GROUP BY rank")
    return {row["rank"]: row["busy_ns"] for row in rows.to_pylist()}
