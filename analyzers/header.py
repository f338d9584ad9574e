"""The analyzer file: a TOML header in SQL comments, prose, one SELECT.

    -- +++
    -- title = "..."          what a reader sees first; may use {columns}
    -- ...
    -- +++
    -- Prose: what it means, when it misleads, what to try next.
    SELECT ...

The id is the file's name. README.md beside this module lists every key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuron_explorer.analyzers.needs import NEEDS
from neuron_explorer.analyzers.templates import fields_of
from neuron_explorer.errors import AnalyzerError
from neuron_explorer.findings import SEVERITIES

ACTS_ON = {
    "events": "time of the step in which its events ran, on the host or the device",
    "device": "device time of its events: worth what sets the pace of the step",
    "exposed": "the same, of which only the part counts that no compute covers",
    "gaps": "time of the step in which the device stood still before its events",
    "stretch": "both: its events and the gaps before them",
}
"""What time a saving is part of; header key `acts_on`, `events` where an analyzer names none."""

_FENCE = "-- +++\n"
_TEXTS = ("title", "question", "severity", "message", "advice", "proof", "reference")
_LISTS = ("needs", "key")
_REQUIRED = frozenset([*_TEXTS, *_LISTS, "columns"])
_OPTIONAL = frozenset(["params", "health", "acts_on", "likely"])
_MIDDLE = 0.5


@dataclass(frozen=True)
class Param:
    """A threshold: `$name` in the query."""

    default: int | float | str
    doc: str
    """What it is for, with its unit."""


@dataclass(frozen=True)
class Analyzer:
    """One `.sql` file: what it asks, what it needs, and how a row becomes a finding."""

    id: str
    title: str
    question: str
    severity: str
    """Severity of a row without a `severity` of its own."""
    needs: tuple[str, ...]
    """Names in `needs.NEEDS`; one that is not met makes it not applicable."""
    message: str
    advice: str
    key: tuple[str, ...]
    """Columns that say what a finding points at; its id is a hash of them."""
    proof: str
    """Query that shows the rows behind a finding; `{column}` becomes an SQL literal."""
    reference: str
    columns: Mapping[str, str]
    params: Mapping[str, Param]
    health: bool
    """Whether it judges the trace rather than the program: such findings come first."""
    acts_on: str
    """What time its savings are part of: a key of `ACTS_ON`."""
    likely: float
    """Where a saving is expected between its bounds: 0 at the low, 1 at the high."""
    doc: str
    sql: str


def parse(name: str, text: str) -> Analyzer:
    """Split an analyzer file into its header, its prose and its query.

    Args:
        name: The file's name; without `.sql` it is the analyzer's id.
        text: The whole file.

    Raises:
        AnalyzerError: The file does not follow the format; names the file and the key.
    """
    header, body = _split(name, text)
    meta = _read_toml(name, header)
    _check_keys(name, meta)
    prose = _prose(body)
    if not prose:
        raise AnalyzerError(f"{name} has no prose after its header")
    values = meta | {
        "id": name.removesuffix(".sql"),
        "needs": tuple(meta["needs"]),
        "key": tuple(meta["key"]),
        "params": _params(name, meta.get("params", {})),
        "health": meta.get("health", False),
        "acts_on": meta.get("acts_on", "events"),
        "likely": float(meta.get("likely", _MIDDLE)),
        "doc": prose,
        "sql": body.strip().removesuffix(";"),
    }
    analyzer = Analyzer(**values)
    _check_names(name, analyzer)
    return analyzer


def _split(name: str, text: str) -> tuple[str, str]:
    before, *rest = text.split(_FENCE, 2)
    if before or len(rest) != 2:
        raise AnalyzerError(f"{name} must start with a header between two '-- +++' lines")
    return rest[0], rest[1]


def _read_toml(name: str, header: str) -> dict[str, Any]:
    lines = header.splitlines()
    if bad := next((line for line in lines if not line.startswith("--")), None):
        raise AnalyzerError(f"{name} has a header line that is no comment: {bad!r}")
    try:
        return tomllib.loads("\n".join(line[3:] for line in lines))
    except tomllib.TOMLDecodeError as error:
        raise AnalyzerError(f"{name} has a header that is no TOML: {error}") from error


def _prose(body: str) -> str:
    lines = body.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return "\n".join(line[3:] for line in lines[:end]).strip()


def _check_keys(name: str, meta: Mapping[str, Any]) -> None:
    if missing := sorted(_REQUIRED - meta.keys()):
        raise AnalyzerError(f"{name} lacks the header key {missing[0]!r}")
    if unknown := sorted(meta.keys() - _REQUIRED - _OPTIONAL):
        raise AnalyzerError(f"{name} has the unknown header key {unknown[0]!r}")
    for key in _TEXTS:
        _expect(name, key, "text", ok=isinstance(meta[key], str) and bool(meta[key].strip()))
    for key in _LISTS:
        _expect(name, key, "a list of texts", ok=_is_texts(meta[key]))
    _expect(name, "key", "at least one column", ok=bool(meta["key"]))
    columns = meta["columns"]
    described = isinstance(columns, dict) and _is_texts(list(columns.values()))
    _expect(name, "columns", "a table of texts, each with content", ok=described)
    _expect(name, "health", "true or false", ok=isinstance(meta.get("health", False), bool))
    likely = meta.get("likely", _MIDDLE)
    numeric = isinstance(likely, int | float) and not isinstance(likely, bool)
    _expect(name, "likely", "a number from 0 to 1", ok=numeric and 0 <= likely <= 1)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)


def _expect(name: str, key: str, what: str, *, ok: bool) -> None:
    if not ok:
        raise AnalyzerError(f"{name}: header key {key!r} must be {what}")


def _params(name: str, table: Any) -> dict[str, Param]:
    _expect(name, "params", "a table", ok=isinstance(table, dict))
    params = {}
    for key, entry in table.items():
        shaped = isinstance(entry, dict) and entry.keys() == {"default", "doc"}
        _expect(name, f"params.{key}", "a table with default and doc", ok=shaped)
        typed = isinstance(entry["default"], int | float | str) and isinstance(entry["doc"], str)
        _expect(name, f"params.{key}", "a number or text, and its meaning", ok=typed)
        params[key] = Param(entry["default"], entry["doc"])
    return params


def _check_names(name: str, analyzer: Analyzer) -> None:
    _expect(name, "severity", f"one of {SEVERITIES}", ok=analyzer.severity in SEVERITIES)
    for need in analyzer.needs:
        _expect(name, "needs", f"among {sorted(NEEDS)}, not {need!r}", ok=need in NEEDS)
    _expect(name, "acts_on", f"one of {list(ACTS_ON)}", ok=analyzer.acts_on in ACTS_ON)
    used = {"key": frozenset(analyzer.key)} | {
        key: fields_of(getattr(analyzer, key)) for key in ("title", "message", "advice", "proof")
    }
    for key, columns in used.items():
        if unknown := sorted(columns - analyzer.columns.keys()):
            raise AnalyzerError(f"{name}: header key {key!r} uses {unknown[0]!r}, not a column")
