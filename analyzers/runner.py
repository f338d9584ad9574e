"""Runs the analyzers on a trace and ranks what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import duckdb

from neuron_explorer.analyzers.found import Found, found_in
from neuron_explorer.analyzers.header import Analyzer, parse
from neuron_explorer.analyzers.needs import NEEDS
from neuron_explorer.analyzers.rows import Facts, to_finding
from neuron_explorer.analyzers.savings import of_the_step
from neuron_explorer.analyzers.sources import SourceTexts
from neuron_explorer.analyzers.verify.results import with_results
from neuron_explorer.errors import AnalyzerError, QueryError
from neuron_explorer.findings import SEVERITIES, Combined, Finding
from neuron_explorer.trace import Trace

Params = Mapping[str, int | float | str]
Rows = list[dict[str, Any]]

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")
_THREADS = 2
"""Queries at once; each holds memory of its own."""


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
    combined: list[Combined] = field(default_factory=list)
    """What all findings are worth together: one for measured and one for modelled savings."""

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
    return _read(files("neuron_explorer.analyzers"))


def _read(folder: Traversable) -> dict[str, Analyzer]:
    found = [
        parse(entry.name, entry.read_text("utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    return {analyzer.id: analyzer for analyzer in sorted(found, key=lambda each: each.id)}


def run(
    trace: Trace,
    only: Iterable[str] | None = None,
    params: Params | None = None,
    folder: Path | None = None,
) -> Report:
    """Run the analyzers on a trace.

    Args:
        trace: What to judge.
        only: Ids of the analyzers to run; all when None.
        params: Thresholds to use instead of the defaults, as `analyzer.name`, or as `name` for
            every analyzer that has one of that name.
        folder: Where more analyzers lie, one `.sql` file each; one of a known name replaces it.

    Raises:
        AnalyzerError: An analyzer or a threshold is unknown, or an analyzer does not run.
    """
    chosen = _choose(analyzers() | (_read(folder) if folder else {}), only)
    used = _params(chosen, params or {})
    needs = sorted({need for analyzer in chosen for need in analyzer.needs})
    met = dict(zip(needs, _side_by_side(trace, partial(_is_met, trace), needs), strict=True))
    able: list[Analyzer] = []
    skipped: list[NotApplicable] = []
    for analyzer in chosen:
        missing = [NEEDS[need].reason for need in analyzer.needs if not met[need]]
        if missing:
            skipped.append(NotApplicable(analyzer.id, missing[0]))
        else:
            able.append(analyzer)
    answers = _side_by_side(trace, lambda each: query(trace, each, used[each.id]), able)
    facts = Facts(SourceTexts(trace), _busy_by_rank(trace))
    found: list[Found] = []
    for analyzer, rows in zip(able, answers, strict=True):
        found += _findings_of(analyzer, rows, facts)
    findings, combined = of_the_step(trace, found)
    ranked = with_results(trace, rank_findings(findings))
    return Report(ranked, skipped, [analyzer.id for analyzer in able], used, combined)


def query(trace: Trace, analyzer: Analyzer, params: Params | None = None) -> Rows:
    """The rows of one analyzer, by column.

    Raises:
        AnalyzerError: The query does not run, or gives other columns than its header names.
    """
    defaults = {name: param.default for name, param in analyzer.params.items()}
    try:
        answer = trace.answer(analyzer.sql, defaults | dict(params or {}))
    except (duckdb.Error, QueryError) as error:
        raise AnalyzerError(f"analyzer {analyzer.id} failed: {error}") from error
    if set(answer.columns) != analyzer.columns.keys():
        raise AnalyzerError(
            f"analyzer {analyzer.id} gives the columns {sorted(answer.columns)},"
            f" its header names {sorted(analyzer.columns)}"
        )
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    return [{name: row[name] for name in analyzer.columns} for row in rows]


def _side_by_side(
    trace: Trace, ask: Callable[[_Asked], _Answer], questions: Sequence[_Asked]
) -> list[_Answer]:
    """The answers in the order of the questions, whichever was ready first.

    Much of a query's time goes into planning, for which DuckDB uses one thread.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            return list(pool.map(ask, questions))
        except BaseException:
            # what runs ends at once, so that Ctrl-C does not wait and the trace can be closed
            pool.shutdown(wait=False, cancel_futures=True)
            trace.end_queries()
            raise


def _findings_of(analyzer: Analyzer, rows: Rows, facts: Facts) -> list[Found]:
    found = [to_finding(analyzer, row, facts) for row in rows]
    if len({finding.id for finding in found}) < len(found):
        raise AnalyzerError(
            f"analyzer {analyzer.id} gives two rows with the same {', '.join(analyzer.key)}"
        )
    return found_in(analyzer, found, rows)


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


def _choose(known: Mapping[str, Analyzer], only: Iterable[str] | None) -> list[Analyzer]:
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
            asked = {owner: used[owner]} if owner in used else used
            known = [f"{id_}.{name}" for id_, values in asked.items() for name in values]
            raise AnalyzerError(
                f"no analyzer has a threshold {key!r}", hint=f"There are: {', '.join(known)}."
            )
        for values in takers:
            values[name] = given[key]
    return used


def _is_met(trace: Trace, need: str) -> bool:
    return bool(trace.rows(NEEDS[need].check))


def _busy_by_rank(trace: Trace) -> dict[int, int]:
    rows = trace.rows("SELECT rank, sum(busy_ns)::BIGINT AS busy_ns FROM devices GROUP BY rank")
    return {row["rank"]: row["busy_ns"] for row in rows}
