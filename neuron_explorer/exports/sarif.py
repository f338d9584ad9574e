"""`sarif`: findings as alerts on source lines, for GitHub code scanning and editors.

A rule for each analyzer, a result for each finding. A fingerprint is made of what stays when
lines move: the analyzer, the file, the function, the module and the text of the line; findings
that agree in all of these are told apart by their order.

The format: SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from urllib.parse import quote

from neuron_explorer import __version__
from neuron_explorer.analyzers import Analyzer, analyzers
from neuron_explorer.exports.sink import Sink
from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats
from neuron_explorer.reports.evidence import headline, saving
from neuron_explorer.reports.json_report import compact
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.trace import Trace

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_LEVELS = {"critical": "error", "warning": "warning", "info": "note"}
_FINGERPRINT = "neuronExplorerFinding/v1"
_FUNCTIONS = """
SELECT source_file, source_line, any_value(source_function) AS source_function
FROM events WHERE source_file IS NOT NULL GROUP BY source_file, source_line
"""


def write_sarif(trace: Trace, judgement: Judgement, out: Sink, root: Path) -> dict[str, object]:
    """Write one run.

    Args:
        trace: The trace, for the function that each line is in.
        judgement: What the analyzers found in it.
        out: Takes the text.
        root: Folder that paths become relative to: that of the repository.
    """
    rows = trace.sql(_FUNCTIONS).to_pylist()
    functions = {(r["source_file"], r["source_line"]): r["source_function"] for r in rows}
    rules = sorted({finding.analyzer for finding in judgement.findings})
    run: dict[str, object] = {
        "tool": {"driver": _driver([analyzers()[name] for name in rules])},
        "originalUriBaseIds": {_ROOT: {"uri": f"{root.absolute().as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "exitCode": int(judgement.exit_code)}],
        "results": _results(judgement, rules, functions, root),
    }
    out.write(compact({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n")
    located = sum(finding.source_file is not None for finding in judgement.findings)
    return {"results": len(judgement.findings), "with_line": located, "rules": len(rules)}


def _driver(rules: Iterable[Analyzer]) -> dict[str, object]:
    return {
        "name": "neuron_explorer",
        "semanticVersion": __version__,
        "rules": [_rule(analyzer) for analyzer in rules],
    }


def _rule(analyzer: Analyzer) -> dict[str, object]:
    doc = analyzer.doc or analyzer.question
    rule: dict[str, object] = {
        "id": analyzer.id,
        "name": "".join(word.capitalize() for word in analyzer.id.split("_")),
        "shortDescription": {"text": analyzer.question},
        "fullDescription": {"text": doc},
        "help": {"text": doc},
        "defaultConfiguration": {"level": _LEVELS[analyzer.severity]},
        "properties": {"tags": ["performance", "pytorch"]},
    }
    if analyzer.reference.startswith("https://"):
        rule["helpUri"] = analyzer.reference.split()[0]
    return rule


def _results(
    judgement: Judgement,
    rules: Sequence[str],
    functions: Mapping[tuple[str | None, int | None], str | None],
    root: Path,
) -> list[dict[str, object]]:
    seen: Counter[str] = Counter()
    results = []
    for finding in judgement.findings:
        function = functions.get((finding.source_file, finding.source_line))
        mark = _mark(finding, function, root)
        seen[mark] += 1
        results.append(
            {
                "ruleId": finding.analyzer,
                "ruleIndex": rules.index(finding.analyzer),
                "level": _LEVELS[finding.severity],
                "message": {"text": _message(finding, judgement)},
                "locations": [_location(finding, function, judgement, root)],
                "partialFingerprints": {_FINGERPRINT: f"{mark}:{seen[mark]}"},
                "properties": _properties(finding),
            }
        )
    return results


def _message(finding: Finding, judgement: Judgement) -> str:
    said = saving(finding, judgement.overview)
    lines = [f"{headline(finding, judgement.overview)} ({said}). {finding.message}"]
    if finding.advice:
        lines.append(f"Change: {finding.advice}")
    return formats.name("\x00".join(lines)).replace("\\x00", "\n")


def _location(
    finding: Finding, function: str | None, judgement: Judgement, root: Path
) -> dict[str, object]:
    """The line; where a finding has none, the trace itself, since an alert needs a place."""
    if finding.source_file is None:
        return {"physicalLocation": _physical(judgement.overview.files[0], 1, None, root)}
    place: dict[str, object] = {
        "physicalLocation": _physical(
            finding.source_file, finding.source_line or 1, finding.source_text, root
        )
    }
    name = function or finding.module
    if name:
        kind = "function" if function else "module"
        place["logicalLocations"] = [{"fullyQualifiedName": formats.name(name), "kind": kind}]
    return place


def _physical(file: str, line: int, text: str | None, root: Path) -> dict[str, object]:
    region: dict[str, object] = {"startLine": max(line, 1)}
    if text:
        region["snippet"] = {"text": formats.name(text)}
    return {"artifactLocation": _artifact(file, root), "region": region}


def _artifact(file: str, root: Path) -> dict[str, object]:
    """A path below the root, relative to it; any other as it is."""
    path = PurePath(file)
    if path.is_absolute() and path.is_relative_to(root.absolute()):
        path = path.relative_to(root.absolute())
    uri = quote(path.as_posix().encode("utf-8", "backslashreplace"))
    if path.is_absolute():
        return {"uri": f"file://{uri}"}
    return {"uri": uri, "uriBaseId": _ROOT}


def _mark(finding: Finding, function: str | None, root: Path) -> str:
    artifact = _artifact(finding.source_file, root)["uri"] if finding.source_file else None
    kind = formats.name(finding.title.partition(":")[0])
    place = [artifact, function, finding.module, finding.source_text]
    told = [finding.analyzer, kind, *place, finding.rank]
    return hashlib.sha256(compact(told).encode()).hexdigest()[:32]


def _properties(finding: Finding) -> dict[str, object]:
    known = {
        "id": finding.id,
        "confidence": finding.confidence,
        "figures": finding.figures,
        "module": finding.module,
        "device_time_ns": finding.device_time_ns,
        "saving_low_ns": finding.saving_low_ns,
        "saving_high_ns": finding.saving_high_ns,
        "saving_likely_ns": finding.saving_likely_ns,
    }
    return {key: value for key, value in known.items() if value is not None}
