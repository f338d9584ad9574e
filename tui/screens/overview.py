"""Overview: what was recorded, where the time went, the worst line, and the ranked findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats
from neuron_explorer.reports.evidence import headline, seen_in_short
from neuron_explorer.reports.layout import MARKS
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Column, Grid
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.overview_lines import (
    NO_LINES,
    health_line,
    in_full,
    not_judged,
    queues_line,
    steps_line,
    worst_line,
)
from neuron_explorer.tui.page import PageScreen
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.state import Spot
from neuron_explorer.tui.text import Line, Piece, paragraph, place, safe
from neuron_explorer.tui.where_time_went import Part, bar, legend, parts, with_causes

_QUEUES = """
SELECT rank, device, queue, busy_ns, span_ns FROM queues ORDER BY busy_ns DESC, rank, queue
"""
_WORST = """
SELECT
    source_file, source_line,
    CAST(sum(device_ns) AS BIGINT) AS device_ns, CAST(sum(host_ns) AS BIGINT) AS host_ns,
    sum(device_ns) / nullif((SELECT sum(work_ns) FROM devices), 0) AS share,
    max_by(bound, device_ns) AS bound
FROM lines GROUP BY ALL
ORDER BY device_ns DESC NULLS LAST, host_ns DESC NULLS LAST, source_file, source_line LIMIT 1
"""
_LOW, _TALL = 16, 44


class OverviewScreen(TraceScreen):
    NAME = "overview"
    TITLE = "Overview"
    ORDER = 1
    HELP = (
        "Where the time of the devices went, and what wastes it. The bar is the time from the first"
        " to the last work of every device: busy by what bounds it, then idle by cause. Below are"
        " the findings, the largest saving first. Enter opens the evidence of one: numbers, the"
        " query that proves it, the change to make."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "evidence"),
        Binding("w", "worst", "worst line"),
        Binding("s", "source", "its line"),
        Binding("t", "timeline", "its events"),
        Binding("i", "not_judged", "what was not judged", show=False),
    ]
    DEFAULT_CSS = """
    OverviewScreen #facts { height: 9; }
    OverviewScreen #preview { height: 6; }
    OverviewScreen.tall #preview { height: 16; }
    OverviewScreen.low #facts { height: 3; }
    OverviewScreen.low #preview { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Part] | None = None
        self._queues: Sequence[Mapping[str, Any]] | None = None
        self._worst: Mapping[str, Any] | None = None
        self._looking = True
        """Whether the worst line is still to come: None says that there is none."""
        self._asked = False

    def body(self) -> ComposeResult:
        yield Lines(self._facts, id="facts")
        yield Grid(self._columns(), empty="looking for waste ...", id="findings")
        yield Lines(self._preview, id="preview", ruled=True)

    def on_resize(self) -> None:
        low = self.size.height < _LOW
        self.set_class(low, "low")
        self.set_class(self.size.height >= _TALL, "tall")
        if low:
            self.query_one("#facts").styles.height = 3

    def entered(self) -> None:
        if not self._asked:
            self._asked = True
            self.ask("parts", parts, self._know_parts)
            self.ask("queues", lambda ask: ask.rows(_QUEUES), self._know_queues)
            self.ask("worst", _worst, self._know_worst)
        self.query_one(Grid).focus()
        self.state_changed()

    def state_changed(self) -> None:
        grid, state = self.query_one(Grid), self.explorer.state
        grid.empty = self._no_findings()
        grid.show_rows(list(enumerate(state.findings, 1)))
        self._redraw()

    def on_grid_moved(self, event: Grid.Moved) -> None:
        if isinstance(event.row, tuple):
            self.explorer.state.select_finding(event.row[1])
        self.query_one("#preview", Lines).redraw()

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        self.action_choose()

    def action_choose(self) -> None:
        if self._finding is not None:
            self.explorer.action_open("evidence")

    def action_source(self) -> None:
        found = self._finding
        if found is not None and found.source_file is None:
            self.explorer.complain(
                "this finding points at no single line; enter shows its evidence"
            )
        elif found is not None:
            self.explorer.action_open("source")

    def action_worst(self) -> None:
        if self._worst is None:
            self.explorer.complain("still looking for it" if self._looking else NO_LINES)
            return
        self.explorer.state.spot = Spot(self._worst["source_file"], self._worst["source_line"])
        self.explorer.action_open("source")

    def action_timeline(self) -> None:
        self.explorer.action_open("timeline")

    def spot_here(self) -> Spot | None:
        found = self._finding
        if found is None or found.source_file is None or found.source_line is None:
            return None
        return Spot(found.source_file, found.source_line)

    def label_here(self) -> str:
        return self._finding.title if self._finding is not None else ""

    def action_not_judged(self) -> None:
        skipped = self.explorer.state.not_applicable
        if skipped:
            self.app.push_screen(PageScreen(lambda width, _: not_judged(skipped, width)))
        else:
            self.explorer.complain("every analyzer could judge this trace so far")

    @property
    def _finding(self) -> Finding | None:
        row = self.query_one(Grid).row
        return None if row is None else row[1]

    def _know_parts(self, found: list[Part]) -> None:
        self._parts = found
        self._redraw()

    def _know_queues(self, found: Sequence[Mapping[str, Any]]) -> None:
        self._queues = found
        self._redraw()

    def _know_worst(self, found: Mapping[str, Any] | None) -> None:
        self._worst, self._looking = found, False
        self._redraw()

    def _redraw(self) -> None:
        facts = self.query_one("#facts", Lines)
        if not self.has_class("low"):
            facts.styles.height = len(self._facts(facts.size.width, 0)) + 1
        for lines in self.query(Lines):
            lines.redraw()

    def _no_findings(self) -> str:
        if self.explorer.state.analyzers_left != 0:
            return "looking for waste ..."
        return "no waste found by the analyzers that could judge this trace"

    def _facts(self, width: int, height: int) -> list[Line]:
        _ = height
        state = self.explorer.state
        worst = worst_line(self._worst, width, looking=self._looking)
        time = self._time(width, 2)
        if self.has_class("low"):
            return [worst, *time[:2]]
        return [
            *time,
            worst,
            steps_line(state.overview, self.explorer.trace.metadata.values(), width),
            queues_line(self._queues, width),
            health_line(state.overview, len(state.not_applicable), width),
        ]

    def _time(self, width: int, most: int) -> list[Line]:
        if self._parts is None:
            return [[("where the time went: adding up ...", "dim")], []]
        if not self._parts:
            return [["No device time: " + NO_DEVICE], []]
        found = with_causes(self._parts, self.explorer.state.findings)
        return [bar(found, width), *legend(found, width, most)]

    def _preview(self, width: int, height: int) -> list[Line]:
        finding, seen = self._finding, self.explorer.state.overview
        if finding is None or seen is None:
            return []
        lines: list[Line] = []
        if finding.source_text:
            code = safe(finding.source_text.strip(), max(width - 2, 8))
            lines.append(
                [
                    (place(finding.source_file, finding.source_line, width // 2), "place"),
                    f"  {code}",
                ]
            )
        if self.has_class("tall"):
            return [*lines, *in_full(finding, seen, width)][:height]
        lines += paragraph(seen_in_short(finding), width)
        return [*lines[: height - 2], *paragraph(f"→ {finding.advice}", width, "good")][:height]

    def _columns(self) -> list[Column]:
        return [
            Column("", _mark, 1, keep=9),
            Column("saves", self._saves, 10, right=True, keep=8),
            Column("finding", self._title, prose=True, keep=10),
            Column("line", _line, 24, keep=5),
        ]

    def _saves(self, row: tuple[int, Finding]) -> Piece:
        high = row[1].saving_high_ns
        return ("unknown", "dim") if high is None else (f"<= {formats.duration(high)}", "good")

    def _title(self, row: tuple[int, Finding]) -> Piece:
        seen = self.explorer.state.overview
        return safe(row[1].title if seen is None else headline(row[1], seen))


NO_DEVICE = "record with ProfilerActivity.CUDA (or your device's)"


def _worst(ask: Ask) -> Mapping[str, Any] | None:
    found = ask.rows(_WORST)
    return found[0] if found else None


def _mark(row: tuple[int, Finding]) -> Piece:
    return MARKS[row[1].severity][0], row[1].severity


def _line(row: tuple[int, Finding]) -> Piece:
    return place(row[1].source_file, row[1].source_line, 24), "place"
