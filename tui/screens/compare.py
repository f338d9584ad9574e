"""Compare: this trace as the base, and what another one of the same program does otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from neuron_explorer.analyzers import Report
from neuron_explorer.analyzers.compare import (
    Comparison,
    FindingChange,
    LinePair,
    Metric,
    Row,
    Verdict,
    compare,
)
from neuron_explorer.analyzers.runner import run
from neuron_explorer.loading import load
from neuron_explorer.reports import diff_words, formats
from neuron_explorer.reports.evidence import where
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Column, Grid
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.state import Spot
from neuron_explorer.tui.text import Line, code, paragraph, safe

NOTHING = "nothing to compare with: neuron-explorer tui base.parquet --compare new.parquet"
KINDS = ("lines", "findings", "modules", "ops", "queues", "figures")
"""What f steps through."""
_OF_KIND = {"lines": ("line", "rest"), "modules": ("module",), "ops": ("op",), "queues": ("queue",)}
_ROLES = {
    Verdict.WORSE: "bad",
    Verdict.NEW: "warn",
    Verdict.BETTER: "good",
    Verdict.GONE: "copy",
    Verdict.SAME: "dim",
    Verdict.UNKNOWN: "dim",
}


@dataclass(frozen=True)
class Shown:
    """One row of the table, whatever it is of."""

    verdict: Verdict
    amount: str
    values: str
    where: str
    said: str
    details: Sequence[tuple[str, str]]
    """Text and role of each line below the table."""
    spot: Spot | None = None


class CompareScreen(TraceScreen):
    NAME = "compare"
    TITLE = "Compare"
    ORDER = 10
    OF_TWO = True
    HELP = (
        "What the other trace (--compare) does otherwise than this one, step against step, beyond"
        " the noise of the steps and of the machine: by line, finding, module, op, queue and"
        " figure. f goes on to the next of these, c hides what is the same. Enter opens the line"
        " as it is in this trace."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "kind", "lines, findings, ..."),
        Binding("c", "changes", "changes only"),
        Binding("s", "source", "its line"),
    ]
    DEFAULT_CSS = """
    CompareScreen #said { height: 6; }
    CompareScreen #why { height: 7; }
    CompareScreen.low #said { height: 2; }
    CompareScreen.low #why { height: 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.kind = KINDS[0]
        self.only_changes = False
        self.seen: Comparison | None = None
        self._asked = False

    def body(self) -> ComposeResult:
        yield Lines(self._said, id="said")
        yield Grid(_columns(), empty=NOTHING, open_cells=24)
        yield Lines(self._why, id="why", ruled=True)

    def on_resize(self) -> None:
        self.set_class(self.size.height < 20, "low")

    def entered(self) -> None:
        grid = self.query_one(Grid)
        grid.focus()
        if not self.explorer.state.others:
            grid.show_rows([])
        elif not self._asked:
            self._asked = True
            self.ask("compare", self._compared, self._know)

    def on_grid_moved(self, event: Grid.Moved) -> None:
        event.stop()
        self.query_one("#why", Lines).redraw()

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        self.action_source()

    def spot_here(self) -> Spot | None:
        row = self.query_one(Grid).row
        return None if row is None else row.spot

    def action_kind(self) -> None:
        self.kind = KINDS[(KINDS.index(self.kind) + 1) % len(KINDS)]
        self._show()

    def action_changes(self) -> None:
        self.only_changes = not self.only_changes
        self._show()

    def action_source(self) -> None:
        spot = self.spot_here()
        if spot is None:
            self.explorer.complain("this trace has no line for that")
            return
        self.explorer.state.spot = spot
        self.explorer.action_open("source")

    def _compared(self, ask: Ask) -> Comparison:
        state = self.explorer.state
        known = None
        if state.analyzers_left == 0:
            known = Report(list(state.findings), list(state.not_applicable), [], {})
        with load(*state.others, progress=self.explorer.importing) as other, ask.using(other):
            mine = known or run(ask.trace)
            ask.check()
            theirs = run(other)
            ask.check()
            return compare(ask.trace, other, (mine, theirs))

    def _know(self, seen: Comparison) -> None:
        self.seen = seen
        self._show()

    def _show(self) -> None:
        if self.seen is None:
            return
        rows = _rows(self.seen, self.kind)
        if self.only_changes:
            rows = [row for row in rows if row.verdict not in {Verdict.SAME, Verdict.UNKNOWN}]
        grid = self.query_one(Grid)
        changes = "changes of " if self.only_changes else ""
        grid.empty = f"no {changes}{self.kind} in these traces"
        grid.cursor = 0
        grid.show_rows(rows)
        for part in self.query(Lines):
            part.redraw()

    def _said(self, width: int, height: int) -> list[Line]:
        state, seen = self.explorer.state, self.seen
        if seen is None:
            return [] if not state.others else [[(" comparing ...", "dim")]]
        step = seen.step
        others = safe(", ".join(state.others), max(width - 12, 8))
        change = formats.signed_duration(step.new_ns - step.base_ns)
        times = f"{formats.duration(step.base_ns)} -> {formats.duration(step.new_ns)}  {change}"
        verdict = diff_words.verdict(seen)
        lines: list[Line] = [
            [" ", (safe(verdict, width - 2), "title" if seen.changed else "good")],
            [(" shown ", "dim"), (self.kind, "title"), ("   with ", "dim"), others],
            [(" step ", "dim"), times],
        ]
        lines += [
            [f"   {label:<8} {amount:<10} ", (safe(why, max(width - 24, 8)), "dim")]
            for label, amount, why in diff_words.shares(seen)
        ]
        lines += [[(f" {safe(note, width - 2)}", "warn")] for note in seen.notes]
        return lines[:height]

    def _why(self, width: int, height: int) -> list[Line]:
        row: Shown | None = self.query_one(Grid).row
        if row is None:
            return []
        lines: list[Line] = []
        for text, role in row.details:
            lines += paragraph(safe(text), width - 1, role, indent=1)
        return lines[:height]


def _rows(seen: Comparison, kind: str) -> list[Shown]:
    if kind == "findings":
        return [_finding(each) for each in seen.findings]
    if kind == "figures":
        return [_figure(each) for each in seen.metrics]
    many = len({measure for row in seen.rows for measure in row.times}) > 1
    return [_row(each, many=many) for each in seen.rows if each.kind in _OF_KIND[kind]]


def _row(row: Row, *, many: bool) -> Shown:
    verdict = row.verdict if row.changed or row.verdict is Verdict.UNKNOWN else Verdict.SAME
    facts = [diff_words.noise(row), diff_words.why(row)]
    if row.pair is None:
        facts.append(row.detail)
    texts = diff_words.texts(row)
    said = code(texts[-1][1]) if texts else safe(row.detail)
    details = [(f"{diff_words.values(row)} a step  {', '.join(filter(None, facts))}", "dim")]
    details += [(f"{mark} {code(text)}", _code_role(mark)) for mark, text in texts]
    return Shown(
        verdict,
        diff_words.amount(row),
        diff_words.values(row) + diff_words.where(row, many=many),
        diff_words.place(row, 60) if row.pair is not None else safe(row.name),
        said,
        details,
        _spot(row.pair),
    )


def _code_role(mark: str) -> str:
    return {"-": "bad", "+": "good"}.get(mark, "")


def _spot(pair: LinePair | None) -> Spot | None:
    """As it stands in this trace, which is the base."""
    if pair is None or pair.base is None:
        return None
    return Spot(pair.base.file, pair.base.number)


def _finding(change: FindingChange) -> Shown:
    finding = change.latest
    stepped = change.verdict is not Verdict.SAME and not change.counted
    line = change.base
    spot = None
    if line is not None and line.source_file is not None and line.source_line is not None:
        spot = Spot(line.source_file, line.source_line)
    details = [(finding.message, ""), (finding.advice, "dim")]
    if stepped:
        near = "only stepped over a threshold: nothing has changed at its place"
        details = [(near, "warn"), *details]
    saving = formats.duration_range(finding.saving_low_ns, finding.saving_high_ns)
    return Shown(
        Verdict.SAME if stepped else change.verdict,
        finding.severity,
        "" if finding.saving_high_ns is None else saving,
        where(finding, 60),
        safe(finding.title),
        details,
        spot,
    )


def _figure(metric: Metric) -> Shown:
    values = [diff_words.metric_value(each, metric.unit) for each in (metric.base, metric.new)]
    return Shown(
        metric.verdict,
        "" if metric.delta is None else diff_words.metric_change(metric),
        "" if metric.delta is None else " -> ".join(values),
        metric.name,
        metric.missing or metric.doc,
        [(metric.doc, ""), *([(metric.missing, "dim")] if metric.missing else [])],
    )


def _columns() -> list[Column]:
    return [
        Column("what", lambda r: (str(r.verdict), _ROLES[r.verdict]), 7, keep=9),
        Column("change", lambda r: r.amount, 10, right=True, keep=8),
        Column("from -> to", lambda r: r.values, 22, keep=5),
        Column("where", lambda r: (r.where, "place"), 26, keep=7),
        Column("code", lambda r: r.said, prose=True, keep=6),
    ]
