"""The same findings for programs: stable keys, sorted, whole numbers in ns and bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from neuron_explorer import __version__
from neuron_explorer.findings import Finding
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.overview import Overview

FINDINGS_SCHEMA = "neuron_explorer.findings/1"
INFO_SCHEMA = "neuron_explorer.info/1"


def findings_json(judgement: Judgement) -> str:
    """The versioned envelope of `analyze`: the same bytes for the same input."""
    seen = judgement.overview
    return dump(
        {
            "schema": FINDINGS_SCHEMA,
            "tool_version": __version__,
            "files": list(seen.files),
            "device": [dict(row) for row in seen.devices],
            "steps": asdict(seen.steps),
            "modelled": None if seen.modelled is None else asdict(seen.modelled),
            "health": _health(seen),
            "raw_times": seen.raw,
            "summary": _summary(judgement),
            "combined": [asdict(each) | {"share": each.share} for each in judgement.combined],
            "findings": [finding_json(finding) for finding in judgement.shown],
            "not_applicable": [skip._asdict() for skip in judgement.not_applicable],
            "exit_code": int(judgement.exit_code),
        }
    )


def info_json(seen: Overview) -> str:
    """The versioned envelope of `info`."""
    return dump(
        {
            "schema": INFO_SCHEMA,
            "tool_version": __version__,
            "files": list(seen.files),
            "tool": seen.tool,
            "device": [dict(row) for row in seen.devices],
            "steps": asdict(seen.steps),
            "modelled": None if seen.modelled is None else asdict(seen.modelled),
            "busy_share": seen.busy_share,
            "layers": [dict(row) for row in seen.layers],
            "capture": dict(seen.capture),
            "recorded": {each.name: each.count for each in seen.recorded},
            "import_issues": [dict(row) for row in seen.issues],
            "health": _health(seen),
            "raw_times": seen.raw,
            "exit_code": int(seen.exit_code),
        }
    )


def dump(value: Mapping[str, object]) -> str:
    """JSON text with sorted keys: one line a key, and one line a record of a list."""
    lines = [f" {json.dumps(key)}: {_records(value[key])}" for key in sorted(value)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def compact(value: object, *, sort_keys: bool = False) -> str:
    """JSON text on one line; every value of DuckDB becomes valid JSON."""
    return json.dumps(
        _plain(value),
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
        sort_keys=sort_keys,
    )


def _records(value: object) -> str:
    if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
        return compact(value, sort_keys=True)
    lines = [f"  {compact(item, sort_keys=True)}" for item in value]
    return "[\n" + ",\n".join(lines) + "\n ]"


def _health(seen: Overview) -> dict[str, object]:
    checks = [dict(row) for row in seen.health]
    return {"status": seen.status, "truncated": seen.truncated, "checks": checks}


def _summary(judgement: Judgement) -> dict[str, object]:
    return {
        "findings": len(judgement.findings),
        "shown": len(judgement.shown),
        "by_severity": judgement.by_severity(),
        "ran": sorted(judgement.report.ran),
        "busy_share": judgement.overview.busy_share,
    }


def finding_json(finding: Finding) -> dict[str, object]:
    """Every field as it stands: no number is rounded."""
    return {name: getattr(finding, name) for name in Finding.__dataclass_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    """NaN and the infinities become text, since JSON has no such numbers."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
