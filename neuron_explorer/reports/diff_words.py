"""How a comparison is put into words, whatever front end shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import ndiff
from pathlib import PurePath

from neuron_explorer.analyzers.compare import (
    Comparison,
    FindingChange,
    Metric,
    Row,
    Side,
    Verdict,
)
from neuron_explorer.analyzers.compare.metrics import BYTES, NS, SHARE
from neuron_explorer.reports import formats

TITLES = {
    "line": "lines",
    "module": "modules",
    "op": "ops and their shapes",
    "queue": "queues",
    "rest": "without a line",
}
"""Kinds of rows in the order they are shown."""


@dataclass(frozen=True)
class Compared:
    """A comparison and the names of what was compared."""

    comparison: Comparison
    base: str
    new: str
    limit: int | None = None
    """Most rows of each kind; None = all."""


def verdict(comparison: Comparison) -> str:
    """The whole of it in one line."""
    if not comparison.changed:
        if comparison.step.program_ns is None:
            return _without_band(comparison)
        return "no change that shows on a busy machine" if comparison.unsteady else "no change"
    count = comparison.changes
    word = comparison.step.verdict
    if word is Verdict.SAME:
        step = "the step takes as long"
    elif word is Verdict.UNKNOWN:
        step = "what is noise is unknown"
    else:
        share = formats.signed_share(comparison.step.program_share)
        step = f"the step is {word}, {share} by the program"
    return f"{count} {'change' if count == 1 else 'changes'}: {step}"


def _without_band(comparison: Comparison) -> str:
    unjudged = sum(row.verdict is Verdict.UNKNOWN for row in comparison.rows)
    return (
        f"nothing new and nothing gone; what is noise is unknown, so {unjudged} rows are not judged"
    )


def steps(side: Side, step_ns: float) -> str:
    """`20 steps, typically 19.1 ms`: of each part its median, which is no mean of the steps."""
    each = formats.duration(step_ns)
    if not side.steps:
        return f"{each}, no steps marked"
    ranks = f" on {side.ranks} ranks" if side.ranks > 1 else ""
    return f"{side.steps} {'step' if side.steps == 1 else 'steps'}{ranks}, typically {each}"


def shares(comparison: Comparison) -> list[tuple[str, str, str]]:
    """What the step's difference is made of: label, amount, explanation."""
    step = comparison.step
    if step.program_ns is None or step.rest_ns is None:
        return []
    changed = sum(row.changed for row in comparison.of_kind("line"))
    lines = f"{changed} {'line' if changed == 1 else 'lines'} changed" if changed else ""
    return [
        ("program", formats.signed_duration(step.program_ns), lines or "no line changed"),
        ("machine", _machine_amount(comparison), machine(comparison)),
        (
            "rest",
            formats.signed_duration(step.rest_ns),
            "interruptions, seldom work, and what noise hides",
        ),
    ]


def _machine_amount(comparison: Comparison) -> str:
    known = any(each.known for each in comparison.machines.values())
    return formats.signed_duration(comparison.step.machine_ns) if known else formats.UNKNOWN


def machine(comparison: Comparison) -> str:
    """What the same work says of the machine."""
    seen = [each for each in comparison.machines.values() if each.known]
    if not seen:
        return "too few parts of a step are the same work in both"
    best = max(seen, key=lambda each: each.control.weight)
    parts = f"{best.control.parts} parts of a step"
    if best.ratio == 1.0:
        return f"the same work took as long ({parts})"
    ratio = formats.digits(best.ratio)
    return f"the same work took {ratio} times as long ({parts}): all below is without that"


def amount(row: Row) -> str:
    """By how much it changed, a step."""
    return formats.signed_duration(row.delta_ns)


def values(row: Row) -> str:
    """`3.10 -> 5.50 ms`, of the time that changed most."""
    time = row.times[row.measure]
    base = "-" if not time.base_events else formats.duration(time.base_ns)
    new = "-" if not time.new_events else formats.duration(time.new_ns)
    return f"{base} -> {new}"


def noise(row: Row) -> str:
    """What chance may make of it; empty where that plays no part."""
    band = row.times[row.measure].band_ns
    if row.verdict in {Verdict.NEW, Verdict.GONE}:
        return ""
    return "noise unknown" if band is None else f"noise {formats.duration(band)}"


def where(row: Row, *, many: bool) -> str:
    """On which side of the machine, where there is more than one."""
    return f" {row.measure}" if many else ""


def place(row: Row, width: int | None = None) -> str:
    """A line by the end of its path, anything else by its name."""
    if row.pair is None:
        return formats.name(f"{row.name} {row.detail}".strip(), width)
    line = row.pair.latest
    parts = PurePath(line.file).parts[-2:]
    return formats.place("/".join(parts), line.number, width)


def texts(row: Row) -> Sequence[tuple[str, str]]:
    """The code of a line: `-` as it was, `+` as it is, blank where it stays as it is."""
    if row.pair is None:
        return ()
    base, new = row.pair.base, row.pair.new
    before = None if base is None else base.text
    after = None if new is None else new.text
    if before == after:
        above = () if base is None or new is None else _above(base.above, new.above)
        return above if after is None else (*above, (" ", after))
    marked = (("-", before), ("+", after))
    return tuple((mark, text) for mark, text in marked if text is not None)


def _above(base: Sequence[str], new: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Code above a line that was removed, or was written."""
    changes = [line for line in ndiff(base, new) if line[0] in "-+"]
    return tuple((line[0], line[2:]) for line in changes)


def why(row: Row) -> str:
    """What stands behind a change of its time."""
    pair = row.pair
    if pair is not None and pair.stands:
        return "still there, runs no more" if pair.new is None else "was there, runs now"
    if pair is not None and pair.edited and pair.base is not None and pair.new is not None:
        return "edited"
    if pair is not None and pair.touched and not pair.edited:
        return "edited above it"
    if row.verdict in {Verdict.NEW, Verdict.GONE} or not row.changed:
        return ""
    return "its work changed" if row.explained else "same code, same work"


def severities(change: FindingChange) -> str:
    """` (warning -> critical)`; empty where a finding has the severity it had."""
    return "" if change.was is None else f" ({change.was} -> {change.latest.severity})"


def metric_value(value: float | None, unit: str) -> str:
    """A figure in its unit."""
    if value is None:
        return formats.UNKNOWN
    if unit == NS:
        return formats.duration(value)
    if unit == BYTES:
        return formats.bytes_(value)
    return formats.share(value) if unit == SHARE else formats.digits(value)


def metric_change(metric: Metric) -> str:
    """By how much a figure changed: in points for a share, in percent where there is a base."""
    if metric.delta is None:
        return metric.missing
    if metric.unit == SHARE:
        return f"{metric.delta * 100:+.1f} points"
    if metric.relative is not None:
        return formats.signed_share(metric.relative)
    return "" if not metric.delta else f"+{metric_value(metric.delta, metric.unit)}"


def stated(comparison: Comparison) -> list[Metric]:
    """Figures worth a line: not 0 in both traces, and not told elsewhere on the page."""
    told = {"same_work", *(each.name for each in comparison.metrics if each.name[:4] == "new_")}
    return [m for m in comparison.metrics if (m.base or m.new) and m.name not in told]
