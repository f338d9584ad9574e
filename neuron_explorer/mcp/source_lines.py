"""Source files of a trace and their lines with what each costs, from the trace alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from neuron_explorer.errors import TraceError, UsageError
from neuron_explorer.findings import Finding
from neuron_explorer.mcp.data_answers import FileCost, SourceLine
from neuron_explorer.trace import Trace

_MOST_FILES = 50
_WITHOUT_LINES = "record with with_stack=True, or with neuron_explorer.profile()"

_FILES = """
SELECT source_file AS file, sum(device_ns)::BIGINT AS device_ns, sum(host_ns)::BIGINT AS host_ns,
    count(DISTINCT source_line) AS lines
FROM lines GROUP BY source_file
ORDER BY device_ns DESC NULLS LAST, host_ns DESC NULLS LAST, source_file
"""
_COSTS = """
SELECT
    source_line AS line, any_value(source_function) AS function,
    sum(device_ns)::BIGINT AS device_ns, sum(host_ns)::BIGINT AS host_ns,
    sum(bytes)::BIGINT AS bytes, sum(flops)::BIGINT AS flops,
    max_by(bound, device_ns) AS bound
FROM lines WHERE source_file = $file AND source_line IS NOT NULL
GROUP BY source_line ORDER BY source_line
"""


def files(trace: Trace) -> list[FileCost]:
    """The costliest first.

    Raises:
        TraceError: No event has a source line.
    """
    rows = trace.sql(_FILES).to_pylist()
    if not rows:
        raise TraceError("no event has a source line", hint=_WITHOUT_LINES)
    return [FileCost(**row) for row in rows[:_MOST_FILES]]


def resolve_file(trace: Trace, wanted: str) -> str:
    """The file that a path, or the end of one, means.

    Raises:
        UsageError: The trace has no such file, or several.
    """
    known: list[str] = [row["file"] for row in trace.sql(_FILES).to_pylist()]
    known += [file for file in _kept(trace) if file not in known]
    found = [file for file in known if file == wanted]
    found = found or [file for file in known if file.endswith(f"/{wanted.lstrip('/')}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"several files end so: {', '.join(found[:10])}")
    some = f"it has {', '.join(known[:10])}" if known else _WITHOUT_LINES
    raise UsageError(f"the trace has no source file {wanted!r}", hint=some)


def annotated(trace: Trace, file: str, findings: Iterable[Finding]) -> list[SourceLine]:
    """Every line whose text was kept or that cost something, in order."""
    texts = _kept(trace).get(file, {})
    costs = {row["line"]: row for row in trace.sql(_COSTS, {"file": file}).to_pylist()}
    pointed: dict[int, list[str]] = {}
    for finding in findings:
        if finding.source_file == file and finding.source_line is not None:
            pointed.setdefault(finding.source_line, []).append(finding.id)
    return [
        SourceLine(
            **costs.get(number, {"line": number}),
            text=texts.get(number),
            findings=pointed.get(number, []),
        )
        for number in sorted(texts.keys() | costs.keys() | pointed.keys())
    ]


def _kept(trace: Trace) -> dict[str, dict[int, str]]:
    """Text by file and line, of all files of the trace."""
    kept: dict[str, dict[int, str]] = {}
    for facts in trace.metadata.values():
        sources: Mapping[str, Any] = facts.get("sources") or {}
        for file, recorded in sources.items():
            lines = recorded.get("lines", {})
            kept.setdefault(file, {}).update({int(line): text for line, text in lines.items()})
    return kept
