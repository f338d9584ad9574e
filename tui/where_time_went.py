"""Where the time of the devices went: one amount for each bound, and for each cause of idling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.ink import BOUNDS
from neuron_explorer.tui.text import Line, Piece, cells, share_of_cells

_BUSY = """
SELECT coalesce(r.bound, 'compilation') AS bound, CAST(sum(t.busy_ns) AS BIGINT) AS ns
FROM timeline AS t LEFT JOIN roofline AS r ON t.rank = r.rank AND t.event_id = r.event_id
GROUP BY ALL
"""
_IDLE = "SELECT CAST(sum(idle_ns) AS BIGINT) AS ns FROM devices"
_ORDER = ("compute", "memory", "overhead", "communication", "copy", "unknown", "compilation")
_WORDS = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "unknown": "bound unknown",
    "compilation": "for a compilation",
}


@dataclass(frozen=True)
class Part:
    """One piece of the devices' time; all pieces together are first to last work of each."""

    role: str
    letter: str
    words: str
    ns: int


def parts(ask: Ask) -> list[Part]:
    """Busy time by what bounds it, each nanosecond once, then the idle time in one piece."""
    busy = {row["bound"]: row["ns"] for row in ask.rows(_BUSY)}
    found = [
        Part(bound, BOUNDS[bound][0] if bound in BOUNDS else "K", _WORDS.get(bound, bound), ns)
        for bound in _ORDER
        if (ns := busy.get(bound))
    ]
    idle = ask.rows(_IDLE)[0]["ns"]
    return [*found, Part("idle", ".", "idle", idle)] if idle else found


def with_causes(found: Sequence[Part], findings: Sequence[Finding]) -> list[Part]:
    """The idle piece cut by the causes that the analyzer of idle devices names."""
    named = [f for f in findings if f.analyzer == "device_idle"]
    told: dict[str, int] = {}
    for finding in named:
        cause, ns = finding.evidence.get("cause"), finding.evidence.get("idle_ns")
        if isinstance(cause, str) and isinstance(ns, int):
            told[cause] = told.get(cause, 0) + ns
    cut: list[Part] = []
    for part in found:
        if part.role != "idle":
            cut.append(part)
            continue
        left = part.ns - sum(told.values())
        causes = sorted(told.items(), key=lambda item: -item[1])
        cut += [Part("idle", ".", f"idle: {_CAUSES.get(c, c)}", ns) for c, ns in causes]
        if left > 0:
            cut.append(Part("idle", ".", "idle, other" if told else "idle", left))
    return cut


_CAUSES = {
    "input": "waits for input",
    "allocation": "allocates memory",
    "gc": "garbage collector",
    "compile": "compiles",
    "sync": "host waits for device",
    "host": "host is late",
    "stall": "host stalls",
    "launch": "launch is slow",
    "queued": "queued, not started",
    "unknown": "cause unknown",
}


def bar(found: Sequence[Part], width: int) -> Line:
    """All of it in one line of `width` cells, each piece in its letter."""
    given = share_of_cells([part.ns for part in found], width)
    return [
        (part.letter * size, f"{part.role}:fill")
        for part, size in zip(found, given, strict=True)
        if size
    ]


def legend(found: Sequence[Part], width: int, most: int) -> list[Line]:
    """Letter, words and share of each piece, the largest first, in at most `most` lines."""
    total = sum(part.ns for part in found) or 1
    lines: list[list[Piece]] = [[]]
    for part in sorted(found, key=lambda p: -p.ns):
        said: list[Piece] = [
            (f" {part.letter} ", f"{part.role}:fill"),
            f" {part.words} {formats.share(part.ns / total)}  ",
        ]
        if lines[-1] and cells(lines[-1]) + cells(said) > width + 2:
            if len(lines) == most:
                break
            lines.append([])
        lines[-1] += said
    return list(lines)
