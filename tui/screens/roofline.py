"""Roofline: arithmetic over bytes against what the chip can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from neuron_explorer.reports import formats
from neuron_explorer.tui import roofline_data as data
from neuron_explorer.tui.grid import Column, Grid, LetterlessGrid
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.plot import Plot, Point, Scale
from neuron_explorer.tui.screen import TraceScreen, event_of, spot_of
from neuron_explorer.tui.state import EventKey, Spot
from neuron_explorer.tui.text import Line, Piece, known, safe


class RooflineScreen(TraceScreen):
    NAME = "roofline"
    TITLE = "Roofline"
    SHORT = "Roof"
    ORDER = 6
    HELP = (
        "Each point is work: to the right the more arithmetic it does for a byte, upwards the more"
        " it did in a second; @ O o . from most to least of the time. The lines are the roofs of"
        " the chip: / its memory, ─ its peak by dtype. The list holds the same points; the one"
        " under the cursor stands out on the plot. g groups by something else, / filters."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "group(1)", "points by"),
        Binding("G", "group(-1)", "points by, backwards", show=False),
        Binding("slash", "search", "filter"),
        Binding("s", "source", "its line"),
        Binding("t", "timeline", "longest event"),
    ]
    DEFAULT_CSS = """
    RooflineScreen #said { height: 1; }
    RooflineScreen #plot { height: 2fr; }
    RooflineScreen Grid { height: 1fr; min-height: 3; }
    RooflineScreen Input { display: none; height: 1; border: none; padding: 0 1; }
    RooflineScreen.searching Input { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.group, self.part = "kernel", ""
        self._roofs: data.Roofs | None = None
        self._work: data.Work | None = None
        self._asked = False

    def body(self) -> ComposeResult:
        yield Lines(self._said, id="said")
        yield Lines(self._drawn, id="plot")
        yield LetterlessGrid(_columns(), empty="reading ...", open_cells=24)
        yield Input(placeholder="part of a kernel, op, module, line or phase", compact=True)

    def entered(self) -> None:
        self.query_one(Grid).focus()
        if not self._asked:
            self._asked = True
            self.ask("roofs", data.roofs, self._know_roofs)
            self._show()

    def on_grid_moved(self, event: Grid.Moved) -> None:
        event.stop()
        self.query_one("#plot", Lines).redraw()

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        self.action_source()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.part = event.value
        self._leave_filter()
        self._show()

    def spot_here(self) -> Spot | None:
        return spot_of(self.query_one(Grid).row)

    def event_here(self) -> EventKey | None:
        return event_of(self.query_one(Grid).row)

    def label_here(self) -> str:
        row = self.query_one(Grid).row
        return "" if row is None else str(row["key"] or "not known")

    def action_go_back(self) -> None:
        """Out of the filter first, then to the screen before."""
        if self.has_class("searching"):
            self._leave_filter()
        elif self.part:
            self.part = ""
            self._show()
        else:
            self.explorer.go_back()

    def action_group(self, by: int) -> None:
        groups = list(data.GROUPS)
        self.group = groups[(groups.index(self.group) + by) % len(groups)]
        self._show()

    def action_search(self) -> None:
        self.add_class("searching")
        self.query_one(Input).focus()

    def action_source(self) -> None:
        row = self.query_one(Grid).row
        if row is None:
            return
        if row["source_file"] is None:
            self.explorer.complain("no source line is known for this point; t shows its event")
            return
        self.explorer.state.spot = Spot(row["source_file"], row["source_line"])
        self.explorer.action_open("source")

    def action_timeline(self) -> None:
        row = self.query_one(Grid).row
        if row is not None:
            self.explorer.state.event = EventKey(row["rank"], row["event_id"])
            self.explorer.action_open("timeline")

    def _leave_filter(self) -> None:
        self.remove_class("searching")
        self.query_one(Grid).focus()

    def _show(self) -> None:
        group, part = self.group, self.part
        self.ask("work", lambda ask: data.work(ask, group, part), self._know)

    def _know_roofs(self, found: data.Roofs | None) -> None:
        self._roofs = found
        self._redraw()

    def _know(self, found: data.Work) -> None:
        self._work = found
        grid = self.query_one(Grid)
        grid.empty = f"nothing here holds {safe(self.part, 30)!r}" if self.part else NO_POINTS
        grid.cursor = 0
        grid.show_rows(found.points)
        self._redraw()

    def _redraw(self) -> None:
        for lines in self.query(Lines):
            lines.redraw()

    def _said(self, width: int, height: int) -> list[Line]:
        _ = width, height
        line: list[Piece] = [(" points by ", "dim"), (self.group, "title")]
        if self.part:
            line += [("  with ", "dim"), (safe(self.part, 30), "accent")]
        work, roofs = self._work, self._roofs
        if work is not None and work.whole_ns:
            line.append((f"  {formats.share(work.placed_ns / work.whole_ns)} of the time", "dim"))
            if work.groups > len(work.points):
                line.append((f", the {len(work.points)} longest of {work.groups:,}", "dim"))
        if roofs is not None:
            modelled = ", modelled" if roofs.modelled else ""
            line.append((f"  {roofs.chip}{modelled}, {formats.bandwidth(roofs.bandwidth)}", "dim"))
        elif work is not None:
            line.append(("  no roof: this chip is not known (--device names one)", "warn"))
        return [line]

    def _drawn(self, width: int, height: int) -> list[Line]:
        work = self._work
        if work is None or width < 10 or height < 3 or not (work.points or self._roofs):
            return []
        points = [_point(row, place, work.placed_ns) for place, row in enumerate(work.points)]
        labels = _LABEL_CELLS if width >= _WIDE and height >= _TALL else 1
        plot = _plot(points, self._roofs, width - labels - 1, height - 1)
        if self._roofs is not None:
            for peak in self._roofs.peaks.values():
                plot.roof(self._roofs.bandwidth, peak)
            for dtype, peak in self._roofs.peaks.items():
                plot.label(peak, dtype)
        plot.points(points, self.query_one(Grid).cursor)
        if labels == 1:
            return [*([" ", *line] for line in plot.lines()), _ends(plot, width)]
        return plot.with_axes(formats.flop_rate, formats.digits, "flop/byte", labels)


_LABEL_CELLS, _WIDE, _TALL = 12, 60, 6
NO_POINTS = "no work with both flops and bytes known: record with record_shapes=True"


def _point(row: Mapping[str, Any], key: int, whole_ns: int) -> Point:
    return Point(
        row["flops"] / row["bytes"],
        row["flops"] * 1e9 / row["time_ns"],
        row["time_ns"] / (whole_ns or 1),
        role_of(row["bound"]),
        key,
    )


def _plot(points: Sequence[Point], roofs: data.Roofs | None, width: int, height: int) -> Plot:
    """Axes that hold all points, and of the roofs the corner of each."""
    across, up = [p.x for p in points], [p.y for p in points]
    if roofs is not None:
        across += [peak / roofs.bandwidth for peak in roofs.peaks.values()]
        up += list(roofs.peaks.values())
    x = Scale(min(across) / 2, max(across) * 4, width)
    return Plot(x, Scale(min(up) / 2, max(up) * 1.5, height))


def _ends(plot: Plot, width: int) -> Line:
    """All that is told of the axes where there is no room for labels beside the plot."""
    first, last = (f"{formats.digits(end)} flop/byte" for end in (plot.x.low, plot.x.high))
    top = f"top {formats.flop_rate(plot.y.high)}"
    gap = width - len(first) - len(last) - 2
    middle = f"{top:^{max(gap, 0)}}" if gap > len(top) + 2 else " " * max(gap, 0)
    return [(f" {first}{middle}{last}", "dim")]


def _columns() -> list[Column]:
    return [
        Column("time", lambda r: formats.duration(r["time_ns"]), 9, right=True, keep=9),
        Column("", lambda r: (letter(r["bound"]), role_of(r["bound"])), 1, keep=8),
        Column("point", lambda r: _name(r["key"]), keep=10),
        Column("dtype", lambda r: r["dtype"] or "", 5, keep=4),
        Column("flop/byte", _intensity, 9, right=True, keep=6),
        Column("reached", _reached, 13, right=True, keep=5),
        Column("of roof", lambda r: known(r["share"], _share), 7, right=True, keep=7),
        Column("events", lambda r: f"{r['events']:,}", 8, right=True, keep=1),
    ]


def _name(key: str | None) -> Piece:
    return ("not known", "dim") if key is None else safe(key)


def _intensity(row: Mapping[str, Any]) -> str:
    return formats.digits(row["flops"] / row["bytes"])


def _reached(row: Mapping[str, Any]) -> str:
    return formats.flop_rate(row["flops"] * 1e9 / row["time_ns"])


def _share(part: float) -> str:
    return ">100%" if part > 1 else formats.share(part).replace(" ", "")
