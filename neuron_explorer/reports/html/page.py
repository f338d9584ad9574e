"""The page: what it says, in the order it is read, handed to the template."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from neuron_explorer import __version__
from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats
from neuron_explorer.reports.evidence import (
    device_names,
    headline,
    modelled_steps,
    saving,
    together,
    where,
)
from neuron_explorer.reports.html import plots
from neuron_explorer.reports.html.facts import Facts, Row
from neuron_explorer.reports.html.listings import Excerpt, SourceFile, Sources
from neuron_explorer.reports.html.tables import Table, tables
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.overview import Overview, Recorded
from neuron_explorer.reports.text import steps
from neuron_explorer.reports.verdicts import verdict

SEVERITIES = {
    "critical": ("●", "critical"),
    "warning": ("▲", "warning"),
    "info": ("■", "info"),
}
"""Mark and word: a colour alone says nothing to everybody."""
_HEALTH = {"ok": "✓", "warn": "▲", "bad": "●"}
_FINDINGS_OPEN = 5
"""Findings whose details are open at first."""


@dataclass(frozen=True)
class Card:
    """One finding as the page shows it."""

    number: int
    finding: Finding
    mark: str
    title: str
    saving: str
    of_what: str
    """`of 87.4 ms`; empty where the saving is unknown."""
    where: str
    excerpt: Excerpt | None
    verdict: str | None


@dataclass(frozen=True)
class Bar:
    """A part of the device time."""

    name: str
    time: str
    share: float
    color: str
    says: str


_MEANINGS = {
    "memory": "moving bytes takes most of it",
    "compute": "arithmetic takes most of it",
    "overhead": "far from both roofs: small or badly shaped work",
    "communication": "collectives",
    "copy": "transfers over the link to the host or a peer",
    "unknown": "cost or chip are not known",
}


def findings_html(judgement: Judgement, facts: Facts) -> str:
    """The whole file.

    Args:
        judgement: What the analyzers found.
        facts: What the views say, asked while the trace was open.
    """
    seen = judgement.overview
    sources = Sources(facts)
    items = plots.items(facts)
    scripts = [plots.script(), _read("report.js")] if items else [_read("report.js")]
    text: str = _template().render(
        title=formats.name(", ".join(seen.files)),
        version=__version__,
        policy=_policy(scripts),
        style=Markup(_read("report.css")),
        scripts=[Markup(script) for script in scripts],
        items=_data(items),
        plots=sorted(items),
        judgement=judgement,
        seen=seen,
        counts=judgement.by_severity(),
        devices=device_names(seen),
        steps=steps(seen),
        modelled=modelled_steps(seen),
        health_mark=_HEALTH[seen.status],
        worst=[row for row in seen.health if row["status"] != "ok"],
        passed=_passed(seen),
        together=[together(each, seen) for each in judgement.combined],
        cards=list(_cards(judgement, sources)),
        open_cards=_FINDINGS_OPEN,
        severities=SEVERITIES,
        bars=_bars(facts),
        roof=facts.roof,
        placed=_placed(facts),
        cells=bool(facts.cells),
        lanes_left_out=_lanes_left_out(facts.cells),
        files=sources.files(),
        sort=sources.sort,
        files_left_out=sources.left_out,
        tables=tables(facts, many_ranks=seen.many_ranks),
        missing=_missing(seen),
        not_applicable=judgement.not_applicable_by_reason(),
    )
    return text


def _cards(judgement: Judgement, sources: Sources) -> Iterator[Card]:
    seen = judgement.overview
    for number, finding in enumerate(judgement.shown, 1):
        said, of, whole = saving(finding, seen).partition(" of ")
        of_what = f"{of}{whole}".strip()
        yield Card(
            number=number,
            finding=finding,
            mark=SEVERITIES[finding.severity][0],
            title=headline(finding, seen),
            saving=said,
            of_what=of_what,
            where=where(finding),
            excerpt=sources.excerpt(finding),
            verdict=verdict(finding),
        )


def _bars(facts: Facts) -> list[Bar]:
    """Device time by what bounds it, largest first."""
    return [
        Bar(
            name=row["bound"],
            time=formats.duration(row["time_ns"]),
            share=row["time_ns"] / facts.work_ns,
            color=plots.BOUNDS.get(row["bound"], plots.BOUNDS["unknown"])[0],
            says=_MEANINGS.get(row["bound"], ""),
        )
        for row in facts.bounds
        if facts.work_ns and row["time_ns"]
    ]


def _placed(facts: Facts) -> str:
    """How much of the device time the roofline can show."""
    placed = sum(row["time_ns"] for row in facts.points)
    if not facts.work_ns or not facts.points:
        return ""
    shown, of_all = len(facts.points), facts.points[0]["of_all"]
    which = f"{shown} of {of_all} kernels" if shown < of_all else f"{shown} kernels"
    part = formats.share(min(placed / facts.work_ns, 1.0))
    return f"{which}, {part} of the device time; of the rest, bytes or FLOPs are not known"


def _lanes_left_out(cells: Sequence[Row]) -> int:
    """Queues and threads beyond those drawn."""
    shown: dict[bool, set[object]] = {}
    of_all: dict[bool, int] = {}
    for row in cells:
        host = row["device"] is None
        shown.setdefault(host, set()).add((row["rank"], row["device"], row["place"]))
        of_all[host] = row["lanes"]
    return sum(count - len(shown[host]) for host, count in of_all.items())


def _passed(seen: Overview) -> list[str]:
    """Checks that no rank fails."""
    failed = {row["check_name"] for row in seen.health if row["status"] != "ok"}
    return sorted({row["check_name"] for row in seen.health} - failed)


def _missing(seen: Overview) -> list[Recorded]:
    """What the trace does not hold, and which argument of the profiler would add it."""
    return [each for each in seen.recorded if not each.count]


def _policy(scripts: Sequence[str]) -> str:
    """Nothing may be loaded or sent, and only these very scripts run."""
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _data(items: dict[str, Any]) -> Markup:
    """JSON that can stand in a script element: no text of a trace can end it."""
    text = json.dumps(items, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _template() -> Any:
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., object]] = {
        "name": formats.name,
        "prose": prose,
        "breakable": breakable,
        "duration": formats.duration,
        "share": formats.share,
        "count": formats.count,
    }
    environment.filters |= filters
    return environment.get_template("report.html.j2")


def prose(text: str) -> Markup:
    """A sentence of ours: what stands between backticks is code."""
    pieces = formats.name(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(formats.name(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece)
        for place, piece in enumerate(pieces)
    )


def breakable(text: str) -> Markup:
    """A path or a C++ name that a narrow column may break where it reads best."""
    pieces = re.split(r"(?<=[/_.,:])(?=\w)", text)
    return Markup("<wbr>").join(escape(piece) for piece in pieces)


__all__ = ["Card", "SourceFile", "Table", "breakable", "findings_html", "prose"]
