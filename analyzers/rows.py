"""A result row of an analyzer as a finding."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuron_explorer.analyzers.header import Analyzer
from neuron_explorer.analyzers.sources import SourceTexts
from neuron_explorer.analyzers.templates import fill, fill_sql
from neuron_explorer.errors import AnalyzerError
from neuron_explorer.findings import SEVERITIES, Finding

FIELDS = (
    "severity",
    "rank",
    "source_file",
    "source_line",
    "module",
    "device_time_ns",
    "share",
    "saving_low_ns",
    "saving_high_ns",
    "saving_basis",
    "figures",
    "confidence",
    "event_ids",
    "host_saving_low_ns",
    "host_saving_high_ns",
)
"""Result columns that become fields of the finding or parts of its saving; every other one but
texts is evidence."""


_ID_DIGITS = 10


@dataclass(frozen=True)
class Facts:
    """What every row of one trace is read against."""

    texts: SourceTexts
    busy_ns: Mapping[int, int]
    """Busy time of the devices by rank."""


def to_finding(analyzer: Analyzer, row: Mapping[str, Any], facts: Facts) -> Finding:
    """The finding a row stands for.

    Raises:
        AnalyzerError: The row holds what its analyzer's header has no use for.
    """
    file, line = row.get("source_file"), row.get("source_line")
    severity = row.get("severity") or analyzer.severity
    if severity not in SEVERITIES:
        raise AnalyzerError(f"analyzer {analyzer.id} gives the severity {severity!r}")
    texts = _texts(analyzer, row)
    return Finding(
        id=finding_id(analyzer, row),
        analyzer=analyzer.id,
        severity=severity,
        title=texts["title"],
        message=texts["message"],
        advice=texts["advice"],
        sql=texts["sql"],
        rank=row.get("rank"),
        source_file=file,
        source_line=line,
        source_text=facts.texts.line(file, line),
        module=row.get("module"),
        device_time_ns=row.get("device_time_ns"),
        share=_share(row, facts),
        saving_low_ns=row.get("saving_low_ns"),
        saving_high_ns=row.get("saving_high_ns"),
        saving_basis=row.get("saving_basis") or "",
        figures=row.get("figures") or "measured",
        confidence=row.get("confidence") or "medium",
        evidence={name: value for name, value in row.items() if _is_evidence(name)},
        event_ids=tuple(row.get("event_ids") or ()),
    )


def _is_evidence(column: str) -> bool:
    """Whether it is neither a field nor a text that only serves the templates."""
    return column not in FIELDS and column != "fix" and not column.startswith("say_")


def finding_id(analyzer: Analyzer, row: Mapping[str, Any]) -> str:
    """The same for the same place in the program, whatever the times and event ids are."""
    key = [analyzer.id, *(row[name] for name in analyzer.key)]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    return f"{analyzer.id}-{digest[:_ID_DIGITS]}"


def _texts(analyzer: Analyzer, row: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {
            "title": fill(analyzer.title, row),
            "message": fill(analyzer.message, row),
            "advice": fill(analyzer.advice, row),
            "sql": fill_sql(analyzer.proof, row),
        }
    except (KeyError, ValueError) as error:
        raise AnalyzerError(
            f"analyzer {analyzer.id} has a text that does not fit: {error}"
        ) from error


def _share(row: Mapping[str, Any], facts: Facts) -> float | None:
    if row.get("share") is not None:
        return float(row["share"])
    device_ns = row.get("device_time_ns")
    busy_ns = facts.busy_ns.get(row.get("rank") or 0)
    if device_ns is None or not busy_ns:
        return None
    # streams that overlap add up to more than the time the device was busy
    return float(min(1.0, round(device_ns / busy_ns, 4)))
