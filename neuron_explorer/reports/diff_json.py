"""A comparison of two traces for programs: whole numbers in ns and bytes, nothing rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from neuron_explorer import __version__
from neuron_explorer.analyzers.compare import FindingChange, Metric, Row, Side, StepChange
from neuron_explorer.analyzers.compare.noise import Machine
from neuron_explorer.analyzers.compare.rows import KINDS
from neuron_explorer.errors import ExitCode
from neuron_explorer.reports.diff_words import Compared, verdict
from neuron_explorer.reports.json_report import dump, finding_json

DIFF_SCHEMA = "neuron_explorer.diff/1"


def diff_json(
    compared: Compared, gates: Sequence[Mapping[str, object]], exit_code: ExitCode
) -> str:
    """The versioned envelope of `diff`."""
    return dump(diff_data(compared) | {"gates": list(gates), "exit_code": int(exit_code)})


def diff_data(compared: Compared) -> dict[str, object]:
    """The comparison as plain data, rows of each kind bounded by the limit."""
    seen = compared.comparison
    return {
        "schema": DIFF_SCHEMA,
        "tool_version": __version__,
        "base": _side(seen.base, compared.base, seen.step.base_ns),
        "new": _side(seen.new, compared.new, seen.step.new_ns),
        "verdict": verdict(seen),
        "changed": seen.changed,
        "changes": seen.changes,
        "trusted": seen.trusted,
        "step": _step(seen.step),
        "machine": {name: _machine(each) for name, each in seen.machines.items()},
        "rows": [_row(row) for kind in KINDS for row in seen.of_kind(kind)[: compared.limit]],
        "findings": [_finding(each) for each in seen.findings],
        "metrics": [_metric(each) for each in seen.metrics],
        "notes": list(seen.notes),
    }


def _side(side: Side, file: str, step_ns: float) -> dict[str, object]:
    return asdict(side) | {"file": file, "step_ns": _whole(step_ns)}


def _step(step: StepChange) -> dict[str, object]:
    return {
        "base_ns": _whole(step.base_ns),
        "new_ns": _whole(step.new_ns),
        "typical_ns": _whole(step.typical_ns),
        "program_ns": _whole(step.program_ns),
        "program_share": step.program_share,
        "machine_ns": _whole(step.machine_ns),
        "rest_ns": _whole(step.rest_ns),
        "noise_ns": _whole(step.band_ns),
        "verdict": step.verdict,
    }


def _machine(seen: Machine) -> dict[str, object]:
    return {
        "ratio": seen.ratio if seen.known else None,
        "scatter": seen.scatter,
        "parts": seen.control.parts,
    }


def _row(row: Row) -> dict[str, object]:
    return {
        "kind": row.kind,
        "name": row.name,
        "detail": row.detail,
        "verdict": row.verdict,
        "changed": row.changed,
        "delta_ns": _whole(row.delta_ns),
        "measure": row.measure,
        "explained": row.explained,
        "line": None if row.pair is None else asdict(row.pair) | {"edited": row.pair.edited},
        "times": {
            name: {
                "base_ns": _whole(time.base_ns),
                "new_ns": _whole(time.new_ns),
                "adjusted_ns": _whole(time.adjusted_ns),
                "noise_ns": _whole(time.band_ns),
                "base_events": time.base_events,
                "new_events": time.new_events,
            }
            for name, time in row.times.items()
        },
    }


def _finding(change: FindingChange) -> dict[str, object]:
    return {
        "verdict": change.verdict,
        "counted": change.counted,
        "was": change.was,
        "base": None if change.base is None else finding_json(change.base),
        "new": None if change.new is None else finding_json(change.new),
    }


def _metric(metric: Metric) -> dict[str, object]:
    return asdict(metric) | {"delta": metric.delta, "relative": metric.relative}


def _whole(ns: float | None) -> int | None:
    return None if ns is None else round(ns)
