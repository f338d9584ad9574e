"""What a trace holds and what it lacks, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from neuron_explorer.reports import console, formats, layout
from neuron_explorer.reports.evidence import AS_RECORDED, device_names, modelled_steps
from neuron_explorer.reports.overview import Overview, Recorded, Row
from neuron_explorer.reports.tables import markdown_text
from neuron_explorer.reports.text import NARROW, header, steps

MOST_ISSUES = 10


def info_text(seen: Overview, page: console.Page) -> str:
    """The whole page of `info`."""
    parts = [
        *header(seen, page.width),
        *_health(seen),
        *_layers(seen, page.width),
        *_recorded(seen),
        *_constants(seen),
        *_issues(seen),
    ]
    return console.render(parts, page)


def info_markdown(seen: Overview) -> str:
    """The same as markdown."""
    lines = [f"### {markdown_text(', '.join(seen.files))}", ""]
    lines += [
        f"- devices: {markdown_text(device_names(seen))}",
        f"- steps: {steps(seen)}",
        *([f"- modelled: {said}"] if (said := modelled_steps(seen)) else []),
        *([f"- times: {AS_RECORDED}"] if seen.raw else []),
        f"- busy: {formats.share(seen.busy_share)}",
        f"- health: **{seen.status}**",
    ]
    lines += [f"  - {status}: {markdown_text(said)}" for status, said in _unhealthy(seen)]
    lines += ["", "| layer | kind | events |", "| --- | --- | ---: |"]
    lines += [f"| {r['layer']} | {r['kind']} | {formats.count(r['events'])} |" for r in seen.layers]
    lines += ["", *(f"- {each.name}: {_amount(each, seen)}" for each in seen.recorded)]
    lines += [f"- modelled from {n}: {markdown_text(s)}" for n, s in seen.sources.items()]
    lines += [f"- {markdown_text(_issue(row))}" for row in seen.issues]
    return "\n".join(lines) + "\n"


def _unhealthy(seen: Overview) -> list[tuple[str, str]]:
    """Status and words of each failed check; what several ranks share is said once."""
    ranks: dict[tuple[str, str], list[int]] = {}
    for row in seen.health:
        if row["status"] != "ok":
            ranks.setdefault((row["status"], str(row["message"])), []).append(row["rank"])
    return [(status, said + _of_ranks(seen, who)) for (status, said), who in ranks.items()]


def _of_ranks(seen: Overview, ranks: Sequence[int]) -> str:
    if not seen.many_ranks:
        return ""
    return f" (rank {', '.join(map(str, ranks))})" if len(ranks) < seen.ranks else " (every rank)"


def _health(seen: Overview) -> Iterator[RenderableType]:
    for status, said in _unhealthy(seen):
        mark = layout.line((f"{status:<5}", layout.STATUS[status]))
        yield layout.hanging(mark, layout.text(said), 2)


def _layers(seen: Overview, width: int) -> Iterator[RenderableType]:
    yield layout.heading("events")
    totals = _by_layer(seen.layers)
    bars = formats.spark([count for _, count, _ in totals], 16 if width > NARROW else 6)
    rows = []
    for (layer, count, kinds), drawn in zip(totals, bars, strict=True):
        said = layout.line((drawn, "blue"), f" {formats.count(count):>9}  ", (kinds, "dim"))
        rows.append((layer, said))
    yield layout.pairs(rows, 2)


def _by_layer(rows: Sequence[Row]) -> list[tuple[str, int, str]]:
    """Layer, events, and its kinds in words; the largest layer first."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["layer"]), []).append(row)
    totals = [(k, sum(r["events"] for r in v), _kinds(v)) for k, v in found.items()]
    return sorted(totals, key=lambda total: (-total[1], total[0]))


def _kinds(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row['kind']} {formats.count(row['events'])}" for row in rows)


def _recorded(seen: Overview) -> Iterator[RenderableType]:
    yield layout.heading("recorded")
    rows = [
        (each.name, Text(_amount(each, seen), style="" if each.count else "yellow"))
        for each in seen.recorded
    ]
    yield layout.pairs(rows, 2)


def _amount(each: Recorded, seen: Overview) -> str:
    """`479 of 480 ops`, or which argument would have given some."""
    option, _, _ = each.argument.partition("=")
    if each.count:
        return f"{formats.count(each.count)}{_base(each, seen)}"
    if seen.capture.get(option):
        return f"none, although {each.argument} was set"
    return f"none: {each.argument} gives {each.gives}"


def _base(each: Recorded, seen: Overview) -> str:
    if each.name == "memory":
        return " events"
    ops = max(every.count for every in seen.recorded if every.name != "memory")
    return "" if each.name == "ops" else f" of {formats.count(ops)} ops"


def _constants(seen: Overview) -> Iterator[RenderableType]:
    if seen.sources:
        yield layout.heading("modelled from")
        yield layout.pairs([(name, layout.text(said)) for name, said in seen.sources.items()], 2)


def _issues(seen: Overview) -> Iterator[RenderableType]:
    if not seen.issues:
        return
    yield layout.heading("import issues")
    for row in seen.issues[:MOST_ISSUES]:
        yield layout.hanging(Text("  "), layout.text(_issue(row)))
    if len(seen.issues) > MOST_ISSUES:
        yield Text(f"  and {len(seen.issues) - MOST_ISSUES} kinds more", style="dim")


def _issue(row: Row) -> str:
    """`3 x negative_duration: set to unknown (first at byte 1,234)`."""
    first = row["first_position"]
    at = "" if first is None else f" (first at {formats.count(first)})"
    example = f", such as {formats.name(str(row['example']), 60)}" if row["example"] else ""
    return f"{formats.count(row['count'])} x {row['kind']}: {row['action']}{example}{at}"
