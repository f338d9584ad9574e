"""What a trace is, before anybody judges it: files, devices, steps, layers, health."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuron_explorer.errors import ExitCode
from neuron_explorer.trace import Trace

Row = Mapping[str, Any]

OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_modules")
"""Capture options of torch.profiler that a trace may name."""


@dataclass(frozen=True)
class Recorded:
    """Something a trace may hold, and the argument of torch.profiler that puts it there."""

    name: str
    count: int
    """Rows that have it: ops, for memory allocations and frees."""
    argument: str
    gives: str


@dataclass(frozen=True)
class Steps:
    """Training steps, over all ranks; times are means in nanoseconds."""

    count: int
    mean_ns: int | None
    min_ns: int | None
    max_ns: int | None


@dataclass(frozen=True)
class Modelled:
    """What a dry run says of the steps on the chip; nothing here is measured."""

    device: str
    steps: int
    """Steps that the means are of; 0 = the whole capture, once."""
    submissions: float
    """Mean programs a step."""
    compiled: float
    """Those of them that are compiled graphs."""
    mean_ns: int
    """Mean span of a step (ns)."""
    total_ns: int
    """All spans together (ns)."""
    memory_share: float | None
    """Part of the programs' time that is bound so, 0 to 1."""
    launch_share: float | None
    compute_share: float | None


@dataclass(frozen=True)
class Overview:
    """Rows of the views, as they are, for whichever front end shows them."""

    files: Sequence[str]
    """As the caller named them."""
    tool: str
    truncated: bool
    """Whether a file of the capture ended early."""
    devices: Sequence[Row]
    steps: Steps
    health: Sequence[Row]
    raw: bool = False
    """Whether the times are those recorded, repaired or not."""
    layers: Sequence[Row] = ()
    issues: Sequence[Row] = ()
    recorded: Sequence[Recorded] = ()
    capture: Mapping[str, bool | None] = field(default_factory=dict)
    """Options as the trace names them; it need not name those that were on."""
    recorded_ns: int | None = None
    """Time the savings are a part of: all steps of a rank (see `rank_spans`), or the whole."""
    modelled: Modelled | None = None
    """Of a dry run."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each group of a dry run's constants is from."""

    @property
    def ranks(self) -> int:
        return len({device["rank"] for device in self.devices}) or 1

    @property
    def many_ranks(self) -> bool:
        return self.ranks > 1

    @property
    def busy_share(self) -> float | None:
        """Time in which a device worked over the time it was seen, 0 to 1; None = unknown."""
        spans = [(d["busy_ns"], d["span_ns"]) for d in self.devices if d["span_ns"]]
        if not spans:
            return None
        return float(sum(busy for busy, _ in spans) / sum(span for _, span in spans))

    @property
    def status(self) -> str:
        """The worst of all checks: ok, warn or bad."""
        if self.truncated:
            return "bad"
        found = {row["status"] for row in self.health}
        return next((status for status in ("bad", "warn") if status in found), "ok")

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.UNTRUSTED if self.status == "bad" else ExitCode.OK


def overview(trace: Trace, files: Sequence[str]) -> Overview:
    """Ask the views; `files` are the names the caller used."""
    metadata = _metadata(trace)
    origins = metadata.get("origin", [])
    return Overview(
        files=tuple(files),
        tool=", ".join(sorted({str(o.get("tool") or "") for o in origins} - {""})),
        truncated=any(bool(o.get("truncated")) for o in origins),
        devices=_rows(trace, "SELECT * FROM devices ORDER BY rank, device"),
        steps=_steps(trace),
        health=_rows(trace, _HEALTH),
        raw=trace.raw,
        layers=_rows(trace, _LAYERS),
        issues=_rows(trace, _ISSUES),
        recorded=_recorded(trace),
        capture=_capture(metadata.get("capture", [])),
        recorded_ns=_recorded_ns(trace),
        modelled=_modelled(trace),
        sources=_sources(metadata.get("capture", [])),
    )


_MODELLED = """
WITH counted AS (
    SELECT * FROM modelled_steps
    WHERE submissions > 0
    QUALIFY step IS NOT NULL OR count(step) OVER () = 0
)
SELECT
    any_value(device) AS device,
    count(step) AS steps,
    avg(submissions) AS submissions,
    avg(compiled_programs) AS compiled,
    CAST(round(avg(span_ns)) AS BIGINT) AS mean_ns,
    CAST(sum(span_ns) AS BIGINT) AS total_ns,
    sum(memory_bound_ns) / nullif(sum(program_ns), 0) AS memory_share,
    sum(launch_bound_ns) / nullif(sum(program_ns), 0) AS launch_share,
    sum(compute_bound_ns) / nullif(sum(program_ns), 0) AS compute_share
FROM counted HAVING count(*) > 0
"""
_HEALTH = """
SELECT rank, check_name, status, value, threshold, message FROM health
ORDER BY CASE status WHEN 'bad' THEN 0 WHEN 'warn' THEN 1 ELSE 2 END, rank, check_name
"""
_LAYERS = """
SELECT layer, kind, count(*) AS events, CAST(sum(duration_ns) AS BIGINT) AS duration_ns
FROM events GROUP BY ALL ORDER BY layer, events DESC, kind
"""
_ISSUES = """
SELECT rank, file, kind, "count", first_position, example, action FROM import_issues
ORDER BY "count" DESC, rank, kind, file
"""
_RECORDED = """
SELECT
    count(*) FILTER (WHERE layer = 'framework' AND kind = 'op') AS ops,
    count(input_shapes) FILTER (WHERE layer = 'framework' AND kind = 'op') AS shapes,
    count(source_file) FILTER (WHERE layer = 'framework' AND kind = 'op') AS lines,
    count(module) FILTER (WHERE layer = 'framework' AND kind = 'op') AS modules,
    count(*) FILTER (WHERE layer = 'memory') AS memory
FROM events
"""
_SOURCES = {
    "ops": ("activities=[ProfilerActivity.CPU, ...]", "the op behind every kernel"),
    "shapes": ("record_shapes=True", "bytes, FLOPs and what bounds each kernel"),
    "lines": ("with_stack=True", "the source line of every op"),
    "modules": ("with_stack=True", "the module of every op"),
    "memory": ("profile_memory=True", "allocations and peak memory"),
}
_STEPS = """
SELECT count(*) AS count, CAST(round(avg(duration_ns)) AS BIGINT) AS mean_ns,
    min(duration_ns) AS min_ns, max(duration_ns) AS max_ns
FROM steps
"""


def _rows(trace: Trace, query: str) -> tuple[Row, ...]:
    return tuple(trace.sql(query).to_pylist())


def _steps(trace: Trace) -> Steps:
    (row,) = _rows(trace, _STEPS)
    return Steps(**row)


def _modelled(trace: Trace) -> Modelled | None:
    found = _rows(trace, _MODELLED)
    return Modelled(**found[0]) if found else None


def _recorded_ns(trace: Trace) -> int | None:
    (row,) = _rows(trace, "SELECT max(span_ns) AS span_ns FROM rank_spans")
    span: int | None = row["span_ns"]
    return span


def _sources(options: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    sources = [s for o in options for s in (o.get("queue_sources") or {}).values()]
    told = [source["facts"].get("constants") or {} for source in sources]
    return {name: text for constants in told for name, text in constants.items()}


def _recorded(trace: Trace) -> tuple[Recorded, ...]:
    (row,) = _rows(trace, _RECORDED)
    return tuple(Recorded(name, row[name], *source) for name, source in _SOURCES.items())


def _metadata(trace: Trace) -> dict[str, list[Any]]:
    """Values of every file by key."""
    found: dict[str, list[Any]] = {}
    for row in _rows(trace, "SELECT key, value FROM trace_metadata ORDER BY rank, file, key"):
        found.setdefault(row["key"], []).append(json.loads(row["value"]))
    return found


def _capture(options: Sequence[Mapping[str, bool | None]]) -> dict[str, bool | None]:
    """An option is on when every file had it, off when one had not, unknown otherwise."""
    return {key: _agreed([given.get(key) for given in options]) for key in OPTIONS}


def _agreed(values: Sequence[bool | None]) -> bool | None:
    if False in values:
        return False
    return True if values and None not in values else None
