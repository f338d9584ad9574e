"""What the overview says in a line or two: steps, queues, health, the worst line, one finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neuron_explorer.analyzers import NotApplicable
from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats, text
from neuron_explorer.reports.evidence import modelled_steps, saving
from neuron_explorer.reports.overview import Overview
from neuron_explorer.tui.text import Line, Piece, cells, paragraph, place, safe

NO_LINES = "no source lines: record with with_stack=True or neuron-explorer run"
NARROW = 60
_HEAD_CELLS = 11


def steps_line(seen: Overview | None, metadata: Iterable[Mapping[str, Any]], width: int) -> Line:
    """The steps; until they are known, what the files say of themselves."""
    room = max(width - _HEAD_CELLS, 8)
    if seen is None:
        return [("recorded   ", "dim"), safe(_recorded(metadata), room)]
    modelled = modelled_steps(seen)
    steps = text.steps(seen) + (f"; modelled: {modelled}" if modelled else "")
    return [("steps      ", "dim"), safe(steps, room)]


def queues_line(queues: Sequence[Mapping[str, Any]] | None, width: int) -> Line:
    """How busy each queue was, as many as fit, and how many do not."""
    head: Piece = ("queues     ", "dim")
    if queues is None:
        return [head, ("reading ...", "dim")]
    if not queues:
        return [head, "no work on any device was recorded"]
    line: list[Piece] = [head]
    many = len({(row["rank"], row["device"]) for row in queues}) > 1
    for row in queues:
        share = row["busy_ns"] / row["span_ns"] if row["span_ns"] else None
        named = f"{row['device']} {row['queue']}" if many else str(row["queue"])
        piece = f"{safe(named, 18)} {formats.bar(share, 6)} {formats.share(share)}   "
        if cells(line) + cells([piece]) > width - 6:
            line.append((f"+{len(queues) - (len(line) - 1)}", "dim"))
            break
        line.append(piece)
    return line


def health_line(seen: Overview | None, skipped: int, width: int) -> Line:
    """Whether the trace is fit to judge, and how many analyzers could not judge it."""
    head: Piece = ("health     ", "dim")
    if seen is None:
        return [head, ("reading ...", "dim")]
    tail: list[Piece] = []
    if skipped and width > NARROW:
        tail = [f"  {skipped} not judged, ", ("i", "accent"), (" says why", "dim")]
    role = {"ok": "good", "warn": "warn", "bad": "bad"}[seen.status]
    said = safe(text.health(seen).plain, max(width - _HEAD_CELLS - cells(tail), 8))
    return [head, (said, role), *tail]


def worst_line(row: Mapping[str, Any] | None, width: int, *, looking: bool) -> Line:
    """The costliest line of all, and what it costs."""
    head: Piece = ("worst line ", "title")
    if row is None:
        return [head, ("looking ..." if looking else NO_LINES, "dim")]
    on_device = row["device_ns"] is not None
    amount = formats.duration(row["device_ns"] if on_device else row["host_ns"])
    said = f"  {amount}" + (" on the device" if on_device else " on the host")
    if row["share"] is not None:
        said += f", {formats.share(row['share'])}"
    bound = f" {row['bound']}-bound" if row["bound"] in {"memory", "compute"} else ""
    said += bound if width > NARROW else ""
    tail: list[Piece] = [f"{said}  ", ("w", "accent"), (" opens it", "dim")]
    if width <= NARROW:
        tail = [f" {formats.share(row['share'])}" if row["share"] else ""]
    room = max(width - _HEAD_CELLS - cells(tail), 10)
    return [head, (place(row["source_file"], row["source_line"], room), "place"), *tail]


def in_full(finding: Finding, seen: Overview | None, width: int) -> list[Line]:
    """What a tall terminal has room for beside the list: most of the evidence."""
    said = "" if seen is None else saving(finding, seen)
    why = ": ".join(filter(None, (said, finding.saving_basis)))
    return [
        *paragraph(safe(finding.message), width),
        [],
        *paragraph(f"→ {finding.advice}", width, "good"),
        [],
        *paragraph(why, width, "dim"),
    ]


def not_judged(skipped: Iterable[NotApplicable], width: int) -> list[Line]:
    """The analyzers that could not judge the trace, by reason."""
    reasons: dict[str, list[str]] = {}
    for skip in sorted(skipped):
        reasons.setdefault(skip.reason, []).append(skip.analyzer)
    lines: list[Line] = [[(" Analyzers that could not judge this trace", "title")]]
    for reason, names in reasons.items():
        lines += [[], *paragraph(safe(reason), width - 2, "warn", indent=1)]
        lines += paragraph(", ".join(names), width - 2, indent=3)
    return [*lines, [], [(" esc closes this page", "dim")]]


def _recorded(metadata: Iterable[Mapping[str, Any]]) -> str:
    """What the files say of themselves: there before any query is answered."""
    facts = list(metadata)
    summaries = [found["summary"] for found in facts if found.get("summary")]
    names = dict.fromkeys(
        str(device.get("name")) for found in facts for device in found.get("devices") or ()
    )
    events = sum(summary.get("events") or 0 for summary in summaries)
    spans = [s["end_ns"] - s["start_ns"] for s in summaries if s.get("end_ns") is not None]
    said = f"{events:,} events"
    if spans:
        said += f" in {formats.duration(max(spans))}"
    if len(facts) > 1:
        said += f", {len(facts)} files"
    return f"{said}  {', '.join(names)}"
