"""The file beside a trace that holds what `verify` measured. Reading it needs no torch.

`trace.parquet` -> `trace.verified.json`. The trace itself is never written. Each result stands
under the id of its finding; the file says which trace it was measured for, so that results of
another trace of the same name are recognised.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuron_explorer.drafts import draft_of
from neuron_explorer.errors import OutputError, TraceError
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

SCHEMA = "neuron_explorer.verified/1"
SUFFIX = ".verified.json"

STALE = "stale"
"""Verdict of a result that was measured for something else."""

_CLAIM = ("device_time_ns", "saving_low_ns", "saving_high_ns", "figures")

_OTHER_TRACE = "measured for another trace of this name: run verify again"
_OTHER_CLAIM = "measured for another claim (other thresholds, chip or version): run verify again"

_FOOTER_END = 8
"""Last bytes of a Parquet file: length of its footer (4, little-endian), then `PAR1`."""


def results_path(trace: Path) -> Path:
    return trace.with_name(f"{trace.stem}{SUFFIX}")


def identity(trace: Path) -> dict[str, object]:
    """Size of the file and hash of its footer, which holds the offsets and bounds of every column.

    Raises:
        OSError: It cannot be read.
    """
    size = trace.stat().st_size
    with trace.open("rb") as file:
        file.seek(max(size - _FOOTER_END, 0))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(size - _FOOTER_END - length, 0))
        digest = hashlib.sha256(file.read()).hexdigest()
    return {"bytes": size, "footer_sha256": digest}


def keep(trace: Path, finding: Finding, result: Mapping[str, object]) -> Path:
    """Add or replace one result; the file is whole at every moment.

    Raises:
        OutputError: The folder cannot be written.
        TraceError: The file that is there is damaged.
    """
    path = results_path(trace)
    known = _read(path) if path.exists() else {}
    now = identity(trace)
    kept = known.get("findings", {}) if known.get("trace") == now else {}
    kept = {**kept, finding.id: {"claim": _claim(finding), **result}}
    whole = {"schema": SCHEMA, "trace": now, "findings": dict(sorted(kept.items()))}
    _write(path, json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return path


def with_results(trace: Trace, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, `verified` filled where a file beside their trace has a result.

    Raises:
        TraceError: Such a file is damaged.
    """
    known = _all_results(trace.files)
    if not known:
        return list(findings)
    return [
        replace(finding, verified=_checked(finding, known[finding.id]))
        if finding.id in known
        else finding
        for finding in findings
    ]


def _all_results(traces: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Results by finding; those of another trace are marked so."""
    found: dict[str, dict[str, Any]] = {}
    for trace in traces:
        path = results_path(trace)
        if not path.exists():
            continue
        known = _read(path)
        results = known.get("findings", {})
        if known.get("trace") != identity(trace):
            results = {id_: {"verdict": STALE, "why": _OTHER_TRACE} for id_ in results}
        found |= results
    return found


def _checked(finding: Finding, result: dict[str, Any]) -> dict[str, Any]:
    if result.get("verdict") != STALE and result.get("claim") != _claim(finding):
        return {"verdict": STALE, "why": _OTHER_CLAIM}
    return result


def _claim(finding: Finding) -> dict[str, object]:
    return {name: getattr(finding, name) for name in _CLAIM}


def _read(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TraceError(
            f"{path} is damaged: {str(error).partition(chr(10))[0]}",
            hint="remove it, and verify the trace again",
        ) from error
    if not isinstance(read, dict) or read.get("schema") != SCHEMA:
        raise TraceError(
            f"{path} holds no results of this version ({SCHEMA})",
            hint="remove it, and verify the trace again",
        )
    return read


def _write(path: Path, text: str) -> None:
    try:
        with draft_of(path) as draft:
            draft.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="results are kept beside the trace: copy it where you may write",
        ) from error
