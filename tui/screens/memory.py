"""Memory: live bytes over time, the peak, and the lines that held it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from neuron_explorer.reports import formats
from neuron_explorer.tui import memory_data as data
from neuron_explorer.tui.area import area
from neuron_explorer.tui.grid import Column, Grid
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen, spot_of
from neuron_explorer.tui.state import EventKey, Spot
from neuron_explorer.tui.text import Line, place, safe

_COLUMNS = 400
"""Columns asked for once; a terminal shows the largest of those that share one of its cells."""


class MemoryScreen(TraceScreen):
    NAME = "memory"
    TITLE = "Memory"
    ORDER = 7
    HELP = (
        "Memory in use over time on one device (v shows the next), its peak in another colour, and"
        " below what was alive at the peak by the line that took it. Enter opens the line, t shows"
        " the op that took the most there, P the one that reached the peak."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "device", "next device"),
        Binding("s", "source", "its line"),
        Binding("t", "timeline", "its op"),
        Binding("P", "peak", "op at the peak"),
    ]
    DEFAULT_CSS = """
    MemoryScreen #said { height: 2; }
    MemoryScreen #chart { height: 2fr; }
    MemoryScreen Grid { height: 3fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._devices: Sequence[Mapping[str, Any]] | None = None
        self._place = 0
        self._levels: data.Levels | None = None

    def body(self) -> ComposeResult:
        yield Lines(self._said, id="said")
        yield Lines(self._chart, id="chart")
        yield Grid(_columns(), empty="reading ...", open_cells=24)

    def entered(self) -> None:
        self.query_one(Grid).focus()
        if self._devices is None:
            self._devices = ()
            self.ask("devices", data.devices, self._know_devices)

    def on_grid_moved(self, event: Grid.Moved) -> None:
        event.stop()

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        self.action_source()

    def spot_here(self) -> Spot | None:
        return spot_of(self.query_one(Grid).row)

    def event_here(self) -> EventKey | None:
        row = self.query_one(Grid).row
        return None if row is None or row["op_id"] is None else EventKey(row["rank"], row["op_id"])

    def action_device(self) -> None:
        if self._devices:
            self._place = (self._place + 1) % len(self._devices)
            self._ask_levels()

    def action_source(self) -> None:
        row = self.query_one(Grid).row
        if row is None:
            return
        if row["source_file"] is None:
            self.explorer.complain("no source line is known for this row")
            return
        self.explorer.state.spot = Spot(row["source_file"], row["source_line"])
        self.explorer.action_open("source")

    def action_timeline(self) -> None:
        row = self.query_one(Grid).row
        if row is not None:
            self._to_op(row["rank"], row["op_id"])

    def action_peak(self) -> None:
        if self._levels is not None:
            self._to_op(self._levels.device["rank"], self._levels.device["peak_op_id"])

    def _to_op(self, rank: int, op_id: int | None) -> None:
        if op_id is None:
            self.explorer.complain("no op is known around this allocation")
            return
        self.explorer.state.event = EventKey(rank, op_id)
        self.explorer.action_open("timeline")

    def _know_devices(self, found: Sequence[Mapping[str, Any]]) -> None:
        self._devices = found
        for lines in self.query(Lines):
            # a chart of nothing would push what is said down to the middle
            lines.display = bool(found)
        if found:
            self._ask_levels()
        else:
            self._show_holders(NO_MEMORY, ())

    def _ask_levels(self) -> None:
        device = (self._devices or ())[self._place]
        self.ask("levels", lambda ask: data.levels(ask, device, _COLUMNS), self._know)

    def _know(self, found: data.Levels) -> None:
        self._levels = found
        self._show_holders(NO_ADDRESSES, found.holders)

    def _show_holders(self, empty: str, holders: Sequence[Mapping[str, Any]]) -> None:
        grid = self.query_one(Grid)
        grid.empty = empty
        grid.show_rows(holders)
        for lines in self.query(Lines):
            lines.redraw()

    def _said(self, width: int, height: int) -> list[Line]:
        _ = width, height
        if self._levels is None:
            return []
        device = self._levels.device
        several = len(self._devices or ()) > 1
        which = f" rank {device['rank']}  {device['device']}"
        place_ = f" ({self._place + 1} of {len(self._devices or ())})" if several else ""
        at = formats.duration(device["peak_ns"] - device["first_ns"])
        peak = f"peak {formats.bytes_(device['peak_bytes'])}"
        since = "more than before the trace" if device["is_relative"] else "in use"
        seen = sum(row["bytes"] for row in self._levels.holders)
        second = f" {formats.bytes_(seen)} of the peak were taken in this trace, by these lines:"
        return [
            [(which, "title"), (place_, "dim"), "  ", (peak, "bad"), f" {since}, {at} in"],
            [(second if self._levels.holders else "", "dim")],
        ]

    def _chart(self, width: int, height: int) -> list[Line]:
        if self._levels is None or height < 1 or width < 3:
            return []
        found, room = self._levels.columns, width - 2
        size = min(room, len(found))
        shown = [
            max(found[at * len(found) // size : (at + 1) * len(found) // size])
            for at in range(room if size == room else size)
        ]
        wide = [shown[at * len(shown) // room] for at in range(room)]
        peak = max(range(room), key=lambda at: wide[at]) if wide else None
        return [[" ", *line] for line in area(wide, height, "copy", peak)]


NO_MEMORY = "no allocation in this trace: record with profile_memory=True"
NO_ADDRESSES = "what was alive at the peak is not known: the trace has no addresses of allocations"


def _columns() -> list[Column]:
    return [
        Column("held", lambda r: formats.bytes_(r["bytes"]), 9, right=True, keep=9),
        Column("tensors", lambda r: f"{r['tensors']:,}", 7, right=True, keep=5),
        Column("largest", lambda r: formats.bytes_(r["largest_bytes"]), 9, right=True, keep=4),
        Column("phase", lambda r: safe(r["phase"] or "", 9), 9, keep=3),
        Column("line", _where, keep=10),
        Column("op", lambda r: (safe(r["op_name"] or "", 24), "dim"), 24, keep=6),
        Column("module", lambda r: (safe(r["module"] or "", 20), "dim"), 20, keep=2),
    ]


def _where(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["source_file"] is None:
        return "no line known", "dim"
    return place(row["source_file"], row["source_line"], 40), "place"
