"""The findings as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats
from neuron_explorer.reports.evidence import (
    AS_RECORDED,
    device_names,
    headline,
    modelled_steps,
    saving,
    together,
    where,
)
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.overview import Overview
from neuron_explorer.reports.tables import markdown_text as safe
from neuron_explorer.reports.text import steps
from neuron_explorer.reports.verdicts import verdict

MARKS = {"critical": "🔴", "warning": "🟡", "info": "🔵"}


def findings_markdown(judgement: Judgement) -> str:
    """The whole comment."""
    lines = [*_header(judgement.overview), *_table(judgement)]
    for number, finding in enumerate(judgement.shown, 1):
        lines += _finding(number, finding, judgement.overview)
    lines += _not_applicable(judgement)
    return "\n".join(lines).rstrip() + "\n"


def _header(seen: Overview) -> Iterator[str]:
    yield f"### neuron-explorer: {safe(', '.join(seen.files))}"
    yield ""
    busy = f"`{formats.bar(seen.busy_share, 20)}` {formats.share(seen.busy_share)} busy"
    facts = [safe(device_names(seen)), f"steps: {steps(seen)}", busy, _trust(seen)]
    facts += [f"times {AS_RECORDED}"] if seen.raw else []
    yield " · ".join(facts)
    yield ""
    if said := modelled_steps(seen):
        yield f"modelled: {said}"
        yield ""


def _trust(seen: Overview) -> str:
    return f"health: {seen.status}" if seen.status == "ok" else f"**health: {seen.status}**"


def _table(judgement: Judgement) -> Iterator[str]:
    if not judgement.findings:
        yield "No waste found by the analyzers that could judge this trace."
        yield ""
        return
    yield "| # | | saving | where | what |"
    yield "| ---: | --- | --- | --- | --- |"
    for number, finding in enumerate(judgement.shown, 1):
        said = saving(finding, judgement.overview)
        place = safe(where(finding) or finding.module or "")
        mark = MARKS[finding.severity]
        title = prose(headline(finding, judgement.overview))
        yield f"| {number} | {mark} | {said} | {place} | {title} |"
    if judgement.hidden:
        yield ""
        yield f"and {judgement.hidden} more"
    for combined in judgement.combined:
        yield ""
        yield f"**together**: {together(combined, judgement.overview)}"
    yield ""


def _finding(number: int, finding: Finding, seen: Overview) -> Iterator[str]:
    title = formats.name(headline(finding, seen))
    summary = escape(f"{number}. {title} ({saving(finding, seen)})")
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield prose(finding.message)
    yield ""
    if finding.source_text:
        yield from fenced(finding.source_text.strip(), "python")
    if finding.share is not None:
        yield f"- `{formats.bar(finding.share, 20)}` {formats.share(finding.share)} of device time"
    yield f"- **change**: {prose(finding.advice)}"
    if said := verdict(finding):
        yield f"- **verified**: {prose(said)}"
    if finding.sql:
        yield "- proof:"
        yield ""
        yield from fenced(finding.sql, "sql")
    yield "</details>"
    yield ""


def prose(content: str) -> str:
    """A sentence of ours: what stands between backticks stays code, the rest is escaped."""
    pieces = formats.name(content).split("`")
    if len(pieces) % 2 == 0:
        return safe(content)
    return "".join(f"`{p}`" if i % 2 else safe(p) for i, p in enumerate(pieces))


def fenced(content: str, language: str) -> Iterator[str]:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in _runs(content)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from (formats.name(line) for line in content.splitlines())
    yield fence
    yield ""


def _runs(content: str) -> list[str]:
    return "".join(c if c == "`" else " " for c in content).split()


def _not_applicable(judgement: Judgement) -> Iterator[str]:
    for reason, names in judgement.not_applicable_by_reason().items():
        yield f"- not applicable: {', '.join(map(safe, names))}: {safe(reason)}"
