"""Timeline: queues and threads over time, from the whole run to single nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from neuron_explorer.reports import formats
from neuron_explorer.tui import range_summary
from neuron_explorer.tui import timeline_data as data
from neuron_explorer.tui.data import Job
from neuron_explorer.tui.event_facts import facts
from neuron_explorer.tui.ink import BOUNDS, letter, role_of
from neuron_explorer.tui.lanes import Lanes
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen, spot_of
from neuron_explorer.tui.state import Spot
from neuron_explorer.tui.text import Line, Piece, cells, safe, short_name
from neuron_explorer.tui.timeline_data import Span

_LOW = 16
_SETTLE_S = 0.05
"""Details are asked for once the cursor rests: whoever holds an arrow key reads none."""


class TimelineScreen(TraceScreen):
    NAME = "timeline"
    TITLE = "Timeline"
    ORDER = 3
    HELP = (
        "Each queue of a device and each thread is a lane. A filled cell is busy: its letter says"
        " what holds the work back, or the kind of host event; where many short events share a"
        " cell the longest stands for them. Arrows walk from event to event and lane to lane; u"
        " goes up to what caused an event (its launch, its op), d down to what it caused. n and p"
        " find the same name, or what / searched for. v begins a range at an event and ends it at"
        " another, or drag the mouse: below is what happened in it."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "source", "line"),
        Binding("u", "up", "cause"),
        Binding("d", "down", "effect"),
        Binding("n", "same(1)", "same name"),
        Binding("p", "same(-1)", "same name before", show=False),
        Binding("right_square_bracket", "gap(1)", "next gap", key_display="]"),
        Binding("left_square_bracket", "gap(-1)", "gap before", show=False),
        Binding("full_stop", "step(1)", "next step", key_display="."),
        Binding("comma", "step(-1)", "step before", key_display=",", show=False),
        Binding("slash", "search", "search"),
    ]
    DEFAULT_CSS = """
    TimelineScreen #range { height: 1; }
    TimelineScreen #details { height: 6; }
    TimelineScreen.low #details { height: 3; }
    TimelineScreen Input { display: none; height: 1; border: none; padding: 0 1; }
    TimelineScreen.searching Input { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._details: Mapping[str, Any] = {}
        self._told_of: Span | None = None
        """The event that details were asked for."""
        self._summary: range_summary.Summary | None = None
        self._asked = False
        self._sought = ""

    def body(self) -> ComposeResult:
        yield Lines(self._range, id="range")
        yield Lanes()
        yield Lines(self._told, id="details", ruled=True)
        yield Input(placeholder="part of a name; enter finds the next", id="search", compact=True)

    @property
    def lanes(self) -> Lanes:
        return self.query_one(Lanes)

    def on_resize(self) -> None:
        self.set_class(self.size.height < _LOW, "low")

    def entered(self) -> None:
        self.lanes.focus()
        if not self._asked:
            self._asked = True
            self.ask("lanes", lambda ask: ask.rows(data.LANES), self._know_lanes)
        elif self.lanes.lanes:
            self._follow()

    def on_lanes_selected(self, event: Lanes.Selected) -> None:
        self.explorer.state.event = event.span.key
        self._details, self._told_of = {}, None
        if self.lanes.has_all:
            self._tell_details()

    def on_lanes_ranged(self, event: Lanes.Ranged) -> None:
        self._summary, chosen = None, event.range
        if chosen is not None:
            self.ask(
                "range",
                lambda ask: range_summary.summary(ask, chosen),
                self._know_range,
                rest_s=_SETTLE_S,
            )
        self.query_one("#details", Lines).redraw()

    def on_lanes_moved(self) -> None:
        self.query_one("#range", Lines).redraw()
        if self._told_of is None:
            # not before: lanes and details asked for at once would both come late
            self._tell_details()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._sought = event.value
        self.remove_class("searching")
        self.lanes.focus()
        self.action_same(1)

    def spot_here(self) -> Spot | None:
        return spot_of(self._details or None)

    def label_here(self) -> str:
        return self.lanes.selected.name if self.lanes.selected is not None else ""

    def action_search(self) -> None:
        self.add_class("searching")
        self.query_one(Input).focus()

    def action_source(self) -> None:
        file, line = self._details.get("source_file"), self._details.get("source_line")
        if file is None or line is None:
            self.explorer.complain("no source line is known for this event")
            return
        self.explorer.state.spot = Spot(file, line)
        self.explorer.action_open("source")

    def action_up(self) -> None:
        self._walk(data.up, "nothing caused this event as far as the trace knows")

    def action_down(self) -> None:
        self._walk(data.down, "this event caused no other as far as the trace knows")

    def action_same(self, by: int) -> None:
        of = self.lanes.selected
        if of is None:
            return
        which, text = (data.CONTAINS, self._sought) if self._sought else (data.SAME_NAME, of.name)
        said = f"no {'more' if by > 0 else 'earlier'} event named {safe(text, 40)}"
        self._go(lambda ask: data.beside(ask, which, of, by, text), said)

    def action_step(self, by: int) -> None:
        of = self.lanes.selected
        if of is not None:
            self._go(lambda ask: data.beside(ask, data.STEPS, of, by), "no step marked there")

    def action_gap(self, by: int) -> None:
        of, least = self.lanes.selected, self.lanes.window.cell_ns
        if of is not None:
            said = f"no gap of {formats.duration(least)} or more there; zoom in for shorter ones"
            self._go(lambda ask: data.gap(ask, of, by, least), said)

    def action_go_back(self) -> None:
        """Out of a search or a range first, then to the screen before."""
        if self.has_class("searching") or self._sought:
            self._sought = ""
            self.remove_class("searching")
            self.lanes.focus()
        elif not self.lanes.clear_range():
            self.explorer.go_back()

    def _walk(self, how: Any, nothing: str) -> None:
        of = self.lanes.selected
        if of is not None:
            self._go(lambda ask: how(ask, of.key), nothing)

    def _tell_details(self) -> None:
        self.query_one("#details", Lines).redraw()
        of = self._told_of = self.lanes.selected
        if of is None:
            return
        self.ask(
            "details",
            lambda ask: data.details(ask, of.key),
            self._know_details,
            rest_s=_SETTLE_S,
        )

    def _go(self, job: Job[Span | None], nothing: str) -> None:
        def arrived(span: Span | None) -> None:
            if span is None:
                self.explorer.complain(nothing)
            else:
                self.lanes.go_to(span)

        self.ask("go", job, arrived)

    def _know_lanes(self, lanes: list[dict[str, Any]]) -> None:
        self.lanes.show(lanes)
        self._follow()

    def _follow(self) -> None:
        """Go to the event that another screen selected."""
        key = self.explorer.state.event
        here = self.lanes.selected
        if key is not None and (here is None or here.key != key):
            self._go(lambda ask: data.span(ask, key), "the selected event has no duration")

    def _know_range(self, found: range_summary.Summary) -> None:
        self._summary = found
        self.query_one("#details", Lines).redraw()

    def _know_details(self, found: Mapping[str, Any]) -> None:
        self._details = found
        self.explorer.state.step = found.get("step")
        self.query_one("#details", Lines).redraw()

    def _range(self, width: int, height: int) -> list[Line]:
        _ = height
        if not self.lanes.lanes:
            return []
        window = self.lanes.window
        start = window.start_ns - self.lanes.run_start_ns
        view = formats.duration(window.end_ns - window.start_ns)
        said = (
            f" {view} from {formats.duration(start)} on, {formats.duration(window.cell_ns)} a cell"
        )
        key: list[Piece] = []
        seen = self.lanes.marks
        for bound, (sign, _meaning) in BOUNDS.items():
            if bound not in seen:
                continue
            more: list[Piece] = [(sign, f"{bound}:fill"), (f" {bound} ", "dim")]
            if len(said) + 2 + cells(key) + cells(more) < width:
                key += more
        return [[said, " " * max(width - len(said) - cells(key), 1), *key]]

    def _told(self, width: int, height: int) -> list[Line]:
        span = self.lanes.selected
        if self.lanes.range is not None:
            if self._summary is None:
                return [[(" adding up the range ...", "dim")]]
            return range_summary.lines(self._summary, self.lanes.run_start_ns, width)
        if span is None:
            return []
        time = formats.duration(span.end_ns - span.start_ns)
        at = formats.duration(span.start_ns - self.lanes.run_start_ns)
        head = f" {span.mark}  {time} at {at}  "
        name = short_name(safe(span.name), max(width - len(head) - 3, 8))
        first: Line = [
            (f" {letter(span.mark)} ", f"{role_of(span.mark)}:fill"),
            head,
            (name, "title"),
        ]
        return [first, *facts(self._details, width)][:height]
