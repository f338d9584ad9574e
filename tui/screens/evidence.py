"""Evidence of one finding: its numbers, the query that proves it, its events, what to change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats
from neuron_explorer.reports.evidence import headline, saving, where
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.state import Spot
from neuron_explorer.tui.text import Line, fit, fit_name, paragraph, safe

_MOST_EVENTS = 200
_EVENTS = """
SELECT e.rank, e.event_id, e.name, e.end_ns - e.start_ns AS duration_ns, e.step,
    coalesce(r.bound, e.kind) AS mark
FROM events AS e LEFT JOIN roofline AS r ON e.rank = r.rank AND e.event_id = r.event_id
WHERE e.event_id IN (SELECT unnest($ids)) AND ($rank IS NULL OR e.rank = $rank)
ORDER BY duration_ns DESC NULLS LAST, e.event_id LIMIT $most
"""
_RUN_START = "SELECT min(start_ns) AS start_ns FROM lanes"


class EvidenceScreen(TraceScreen):
    NAME = "evidence"
    TITLE = "Evidence"
    HELP = (
        "All that stands behind one finding. The change to make comes first, then what was"
        " measured, the query that shows the rows (x runs it), and the events themselves."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "go_back", "back"),
        Binding("s", "source", "its line"),
        Binding("t", "app.open('timeline')", "its events"),
        Binding("x", "run_query", "run the query"),
        Binding("n", "next(1)", "next finding"),
        Binding("p", "next(-1)", "previous finding"),
    ]
    DEFAULT_CSS = "EvidenceScreen Lines { height: 1fr; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._events: Sequence[Mapping[str, Any]] | None = None
        self._run_start_ns: int | None = None
        self._of: Finding | None = None

    def body(self) -> ComposeResult:
        yield Lines(self._lines, focus=True)

    def entered(self) -> None:
        self.query_one(Lines).focus()
        finding = self.explorer.state.finding
        if finding is self._of:
            return
        self._of, self._events = finding, None
        self.query_one(Lines).show(self._lines)
        if finding is not None:
            self.ask("events", lambda ask: _events(ask, finding), self._know)
            self.ask("start", lambda ask: ask.rows(_RUN_START)[0]["start_ns"], self._know_start)

    def spot_here(self) -> Spot | None:
        found = self._of
        if found is None or found.source_file is None or found.source_line is None:
            return None
        return Spot(found.source_file, found.source_line)

    def label_here(self) -> str:
        return self._of.title if self._of is not None else ""

    def action_source(self) -> None:
        if self._of is not None and self._of.source_file is None:
            self.explorer.complain("this finding points at no single line")
            return
        self.explorer.action_open("source")

    def action_run_query(self) -> None:
        if self._of is not None:
            self.explorer.state.query = self._of.sql
            self.explorer.action_open("sql")

    def action_next(self, by: int) -> None:
        found = self.explorer.state.findings
        if self._of in found:
            at = (found.index(self._of) + by) % len(found)
            self.explorer.state.select_finding(found[at])
            self.entered()

    def _know(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._events = events
        self.query_one(Lines).redraw()

    def _know_start(self, start_ns: int | None) -> None:
        self._run_start_ns = start_ns
        self.query_one(Lines).redraw()

    def _lines(self, width: int, height: int) -> list[Line]:
        _ = height
        finding = self._of
        if finding is None:
            return [["Choose a finding on the overview."]]
        return [
            *self._head(finding, width),
            *_section("Change", paragraph(finding.advice, width, "good")),
            *_section("Seen", paragraph(finding.message, width)),
            *_section("Saving", self._saving(finding, width)),
            *_section("Numbers", _numbers(finding, width, self._run_start_ns)),
            *_section("Query", paragraph(_query(finding), width, "dim")),
            *_section("Events", self._event_lines(finding, width)),
        ]

    def _head(self, finding: Finding, width: int) -> list[Line]:
        seen = self.explorer.state.overview
        title = finding.title if seen is None else headline(finding, seen)
        lines: list[Line] = list(paragraph(safe(title), width, "title"))
        if finding.source_file is not None:
            code = safe((finding.source_text or "").strip(), max(width // 2, 8))
            lines.append([(where(finding, max(width // 2, 12)), "place"), f"  {code}"])
        elif finding.module:
            lines.append([(safe(finding.module, width), "accent")])
        return lines

    def _saving(self, finding: Finding, width: int) -> list[Line]:
        seen = self.explorer.state.overview
        said = "" if seen is None else saving(finding, seen)
        why = ": ".join(filter(None, (said, finding.saving_basis)))
        return [
            *paragraph(why, width),
            [("figures ", "dim"), finding.figures, ("  confidence ", "dim"), finding.confidence],
            [("verified ", "dim"), _verified(finding)],
        ]

    def _event_lines(self, finding: Finding, width: int) -> list[Line]:
        if not finding.event_ids:
            return [["it names no single events"]]
        if self._events is None:
            return [[("reading ...", "dim")]]
        said = f"{len(finding.event_ids):,} in all"
        if len(finding.event_ids) > len(self._events):
            said += f", the longest {len(self._events):,} here"
        return [[(said, "dim")], *(_event_line(row, width) for row in self._events)]


def _events(ask: Ask, finding: Finding) -> Sequence[Mapping[str, Any]]:
    ids, rank = list(finding.event_ids), finding.rank
    return ask.rows(_EVENTS, {"ids": ids, "rank": rank, "most": _MOST_EVENTS})


def _section(title: str, lines: Sequence[Line]) -> list[Line]:
    return [[], [(title, "title")], *lines]


def _numbers(finding: Finding, width: int, run_start_ns: int | None) -> list[Line]:
    said = [
        (_label(name), _value(name, value, run_start_ns))
        for name, value in finding.evidence.items()
        if value is not None
    ]
    widest = min(max((len(label) for label, _ in said), default=0), 24)
    room = max(width - widest - 2, 8)
    return [[(fit_name(label, widest), "dim"), "  ", safe(value, room)] for label, value in said]


def _label(name: str) -> str:
    """A name of the evidence in words; the unit stands behind its value."""
    return name.removesuffix("_ns").replace("_", " ")


def _value(name: str, value: object, run_start_ns: int | None) -> str:
    """A number in the unit that its name ends in; a moment as the timeline says it."""
    if name == "start_ns" and isinstance(value, int):
        since_start = None if run_start_ns is None else value - run_start_ns
        return "" if since_start is None else f"{formats.duration(since_start)} into the run"
    if isinstance(value, int | float) and not isinstance(value, bool):
        for ending, written in _WRITTEN.items():
            if name.endswith(ending):
                return written(value)
        return formats.digits(value) if isinstance(value, float) else f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "_ns": formats.duration,
    "bytes": formats.bytes_,
    "bytes_saved": formats.bytes_,
    "share": formats.share,
    "flops": formats.flops,
}


def _query(finding: Finding) -> str:
    return finding.sql.strip() or "none"


def _verified(finding: Finding) -> str:
    if finding.verified is None:
        return "not yet: nothing was run again"
    return ", ".join(f"{name} {value}" for name, value in finding.verified.items())


def _event_line(row: Mapping[str, Any], width: int) -> Line:
    mark = str(row["mark"])
    time = fit(formats.duration(row["duration_ns"]), 9, "right")
    step = "" if row["step"] is None else f"step {row['step']}"
    return [
        (f" {letter(mark)} ", role_of(mark)),
        time,
        "  ",
        fit_name(str(row["name"]), max(width - 26, 8)),
        (f" {step:>10}", "dim"),
    ]
