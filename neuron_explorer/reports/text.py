"""The findings as a person sees them in ten seconds, at 80 columns or at 40."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from neuron_explorer.findings import Finding
from neuron_explorer.reports import console, formats, layout
from neuron_explorer.reports.evidence import (
    AS_RECORDED,
    modelled_steps,
    saving,
    seen_in_short,
    together,
    where,
)
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.overview import Overview
from neuron_explorer.reports.verdicts import verdict_line

INDENT = 5
NARROW = 60
MOST_DEVICES = 8
MOST_REASONS = 3


def findings_text(judgement: Judgement, page: console.Page) -> str:
    """The whole page of `analyze`."""
    parts = [
        *header(judgement.overview, page.width),
        *_findings(judgement, page.width),
        *_not_applicable(judgement),
        *_next(judgement),
    ]
    return console.render(parts, page)


def header(seen: Overview, width: int) -> Iterator[RenderableType]:
    """What was looked at: files, devices with their busy share, steps, health."""
    yield Text(formats.shorten(", ".join(map(formats.name, seen.files)), width), style="bold")
    rows = [("device", body) for body in _devices(seen, width)]
    rows += [("steps", Text(steps(seen)))]
    if said := modelled_steps(seen):
        rows.append(("modelled", layout.text(said)))
    if seen.raw:
        rows.append(("times", Text(AS_RECORDED)))
    rows += [("busy", _busy(seen, width)), ("health", health(seen))]
    yield layout.pairs(rows)


def steps(seen: Overview) -> str:
    """`3 of 12.3 ms each`, or that there are none."""
    found = seen.steps
    if not found.count:
        return "none marked"
    each = " each" if found.count > 1 else ""
    return f"{found.count} of {formats.duration(found.mean_ns)}{each}"


def health(seen: Overview) -> Text:
    """The worst status, and how many checks stand behind it."""
    status = seen.status
    if status == "ok":
        return layout.line(
            ("ok", layout.STATUS["ok"]), f", {len(seen.health)} of {len(seen.health)} checks"
        )
    said = "do not trust these numbers" if status == "bad" else "read with care"
    failed = dict.fromkeys(row["check_name"] for row in seen.health if row["status"] == status)
    names = ", ".join(failed) or "the trace is cut short"
    return layout.line((status, layout.STATUS[status]), f": {said} ({names})")


def _devices(seen: Overview, width: int) -> Iterator[Text]:
    shown = seen.devices[:MOST_DEVICES]
    for row in shown:
        rank = f"rank {row['rank']} " if seen.many_ranks else ""
        chip = _chip(row)
        named = f"{rank}{formats.name(str(row['device']))}"
        bar = layout.share_bar(_share(row), 10) if len(shown) > 1 else Text()
        room = width - 9 - (bar.cell_len + 2 if bar else 0)
        yield layout.line(formats.shorten(f"{named}  {chip}", room), "  ", bar)
    if len(seen.devices) > len(shown):
        yield Text(f"and {len(seen.devices) - len(shown)} more", style="dim")
    if not shown:
        dry_run = seen.modelled
        none = "no work on any device"
        yield Text(none if dry_run is None else f"{formats.name(dry_run.device)}  shapes only")


def _chip(row: Mapping[str, object]) -> str:
    """By whose roof the device is judged, or how to name one."""
    device, chip = str(row["device"]), row["chip"]
    if chip is not None:
        return "judged by this machine's CPU" if chip == device else formats.name(str(chip))
    if device.endswith("dry run)"):
        return "runs on this machine"
    if device == "cpu":
        return "chip unknown: neuron-explorer calibrate measures it"
    return "chip unknown: name it with --device"


def _share(row: Mapping[str, object]) -> float | None:
    busy, span = row["busy_ns"], row["span_ns"]
    if isinstance(busy, int) and isinstance(span, int) and span:
        return busy / span
    return None


def _busy(seen: Overview, width: int) -> Text:
    return layout.share_bar(seen.busy_share, 30 if width > NARROW else 12)


def _findings(judgement: Judgement, width: int) -> Iterator[RenderableType]:
    yield Text("")
    if not judgement.findings:
        yield Text("No waste found by the analyzers that could judge this trace.", style="green")
    for number, finding in enumerate(judgement.shown, 1):
        yield from _finding(number, finding, judgement.overview, width)
    for combined in judgement.combined:
        said = layout.text(together(combined, judgement.overview), "bold")
        yield layout.hanging(Text("together "), said)
        yield Text("")
    if judgement.hidden:
        yield Text(f"and {judgement.hidden} more: --limit 0 shows all\n", style="dim")


def _finding(number: int, finding: Finding, seen: Overview, width: int) -> Iterator[RenderableType]:
    mark, style = layout.MARKS[finding.severity]
    lead = layout.line(f"{number:>2} ", (mark, style), " ")
    body = layout.line(
        (saving(finding, seen), "bold green"), "  ", (formats.name(finding.title), "bold")
    )
    yield layout.hanging(lead, body)
    room = width - INDENT
    if finding.source_file is not None:
        yield from _source(finding, room)
    elif finding.module:
        yield layout.indent(Text(formats.name(finding.module, room), style="cyan"), INDENT)
    yield layout.indent(_facts(finding, width), INDENT)
    if finding.advice:
        arrow = Text("→ ", style="green")
        yield layout.hanging(arrow, layout.text(finding.advice), INDENT)
    yield from verdict_line(finding, INDENT)
    yield Text("")


def _source(finding: Finding, room: int) -> Iterator[RenderableType]:
    place = where(finding, room)
    code = formats.name((finding.source_text or "").strip())
    left = room - cell_len(place) - 2
    if code and left >= min(cell_len(code), 24):
        shown = layout.line((place, "cyan"), "  ", (formats.clip(code, left), "dim"))
        yield layout.indent(shown, INDENT)
        return
    yield layout.indent(Text(place, style="cyan"), INDENT)
    if code:
        yield layout.indent(Text(formats.clip(code, room - 2), style="dim"), INDENT + 2)


def _facts(finding: Finding, width: int) -> Text:
    """The share of device time as a bar, then what was seen, with its numbers."""
    said = formats.name(seen_in_short(finding))
    if finding.share is None:
        return Text(said)
    drawn = layout.share_bar(finding.share, 10 if width > NARROW else 6, "magenta")
    return layout.line(drawn, f" of device time. {said}")


def _not_applicable(judgement: Judgement) -> Iterator[RenderableType]:
    reasons = judgement.not_applicable_by_reason()
    if not reasons:
        return
    if judgement.limit is not None and len(reasons) > MOST_REASONS:
        # a page of them would push the findings off a terminal, which shows the end first
        skipped = len(judgement.not_applicable)
        known = skipped + len(judgement.report.ran)
        count = Text(f"{skipped} of {known} analyzers: --limit 0 says why\n", "dim")
        yield layout.hanging(Text("not applicable  ", "dim"), count)
        return
    yield Text("not applicable", style="dim")
    for reason, names in reasons.items():
        said = layout.text(f"{', '.join(names)}: {reason}", "dim")
        yield layout.hanging(Text("  "), said)
    yield Text("")


def _next(judgement: Judgement) -> Iterator[RenderableType]:
    named = judgement.overview.files[0]
    file = shlex.quote(named)
    commands = [f'neuron-explorer sql {file} "SELECT * FROM lines"']
    if judgement.hidden:
        commands.append(f"neuron-explorer analyze {file} --limit 0")
    if Path(named).suffix in {".json", ".gz"}:
        commands.append(f"neuron-explorer import {file}  # then all is faster")
    yield Text("next", style="bold")
    for command in commands:
        yield layout.hanging(Text("  "), layout.text(command, "dim"))
