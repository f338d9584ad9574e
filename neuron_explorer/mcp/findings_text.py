"""Findings in the short form of lists, and the longer one of a single finding."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from neuron_explorer.errors import UsageError
from neuron_explorer.findings import Finding
from neuron_explorer.mcp.answers import Rows, Saving, ShortFinding
from neuron_explorer.reports import formats, json_report
from neuron_explorer.sandbox import QueryResult

_MOST_CHARACTERS = 60_000
"""Of one result: what an agent can still take in."""


def short(finding: Finding) -> ShortFinding:
    """One line of a list."""
    verified = finding.verified
    return ShortFinding(
        id=finding.id,
        analyzer=finding.analyzer,
        severity=finding.severity,
        title=finding.title,
        place=formats.place(finding.source_file, finding.source_line) or finding.module,
        saving=Saving(
            low_ns=finding.saving_low_ns,
            high_ns=finding.saving_high_ns,
            likely_ns=finding.saving_likely_ns,
            figures=finding.figures,
        ),
        device_time_ns=finding.device_time_ns,
        confidence=finding.confidence,
        verified=None if verified is None else str(verified.get("verdict")),
    )


def find(findings: Sequence[Finding], word: str) -> Finding:
    """The finding with this id, or whose id begins so.

    Raises:
        UsageError: None does, or several do.
    """
    found = [f for f in findings if f.id == word] or [f for f in findings if f.id.startswith(word)]
    if word and len(found) == 1:
        return found[0]
    shown = ", ".join(f.id for f in (found or findings)[:10]) or "there are none"
    problem = "several findings begin with" if found and word else "no finding is called"
    raise UsageError(f"{problem} {word!r}", hint=f"ids: {shown}")


def rows_of(result: QueryResult) -> Rows:
    """As JSON has them, cut where the whole becomes too long."""
    rows: list[list[Any]] = []
    length = 0
    for row in result.rows:
        text = json_report.compact(row)
        length += len(text)
        if length > _MOST_CHARACTERS:
            return Rows(columns=result.columns, rows=rows, truncated=True)
        rows.append(json.loads(text))
    return Rows(columns=result.columns, rows=rows, truncated=result.truncated)


def plain(value: Any) -> Any:
    """As JSON has it: no dates, no NaN, no integers beyond what Python keeps."""
    return json.loads(json_report.compact(value))
