"""How a timeline looks: the ruler, the name of a lane, and its events in cells."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

from rich.cells import cell_len
from textual.strip import Strip

from neuron_explorer.reports import formats
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.state import EventKey
from neuron_explorer.tui.text import Line, bare, fit, joined, safe
from neuron_explorer.tui.timeline_data import Cell, Cells, Range, Window

_DENSE, _SPARSE = 0.5, 0.05
"""Part of a cell that short events must fill to show as solid, or as more than a dot."""

MOST_ROWS = 3
"""Of one lane; the last of three is left blank."""

_NAMED_CELLS = 4
_TICK_CELLS = 14


def ruler(window: Window, run_start_ns: int, label_cells: int, chosen: Range | None) -> Line:
    """Times from the start of the run; a chosen range stands out."""
    line = ""
    for column in range(0, window.columns, _TICK_CELLS):
        past = column * window.cell_ns
        at = window.start_ns - run_start_ns
        said = f"│+{formats.duration(past)}" if past else f"│{formats.duration(at)}"
        if column == 0 or column + cell_len(said) <= window.columns:
            line += fit(said, _TICK_CELLS)
    line = fit(line.rstrip(), window.columns)
    blank = " " * label_cells
    if chosen is None:
        return [(blank + line, "dim")]
    first, end = (window.column(at) for at in (chosen.start_ns, chosen.end_ns - 1))
    return [
        (blank + line[:first], "dim"),
        (line[first : end + 1], "accent:fill"),
        (line[end + 1 :], "dim"),
    ]


@dataclass(frozen=True)
class Head:
    """How the head of a lane is drawn."""

    width: int
    ranks: bool
    """Whether it says the rank."""
    here: bool
    """Whether the cursor is in it."""
    focus: bool


def lane_line(
    lane: Mapping[str, Any], head: Head, drawn: Drawn, selected: EventKey | None, part: int
) -> Line:
    """One of the rows of a lane: the first has the names, the others only the events."""
    if part > 0:
        return [" " * head.width, *drawn.line(lane["lane"], selected, named=False)]
    return [*_label(lane, head), *drawn.line(lane["lane"], selected)]


def _label(lane: Mapping[str, Any], head: Head) -> Line:
    """Mark of the cursor, queue or thread, and track in exactly the width, the last cell blank."""
    rank, width = f"r{lane['rank']} " if head.ranks else "", head.width - 1
    track = str(lane["track"])
    room = width - 1 - len(track) - 1
    place = formats.shorten(rank + safe(str(lane["place"])), max(room, 0)) if room > 3 else ""
    said = f"{place} {track}" if place else track
    role = "title" if head.here else "dim"
    return [(" ▸"[head.here and head.focus], role), (fit(said, width - 1) + " ", role)]


@dataclass(frozen=True)
class Drawn:
    """The cells of a window, as they are shown until others arrive."""

    window: Window
    cells: Cells
    strips: dict[int, tuple[object, Strip]] = field(default_factory=dict, compare=False)
    """Lines as they were drawn last, with all that they were drawn from."""
    runs: dict[int, Sequence[tuple[int, int, Cell]]] = field(default_factory=dict, compare=False)

    @cached_property
    def _of_lane(self) -> Mapping[int, Mapping[int, Cell]]:
        """The cells of each lane by column, from left to right."""
        found: dict[int, dict[int, Cell]] = {}
        for (lane, column), cell in sorted(self.cells.items(), key=itemgetter(0)):
            found.setdefault(lane, {})[column] = cell
        return found

    @cached_property
    def marks(self) -> Set[str]:
        return {cell.span.mark for cell in self.cells.values()}

    def line(self, lane: int, selected: EventKey | None, *, named: bool = True) -> Line:
        """The events of one lane, with their names; neighbours of one look are one piece."""
        pieces: list[tuple[str, str]] = []
        drawn = 0
        for column, size, cell in self._runs(lane):
            chosen = cell.span.key == selected
            if not cell.is_long(self.window.cell_ns):
                shown = _speck(cell, chosen=chosen)
            else:
                said, role = _block(cell, size, chosen=chosen)
                shown = (said if named else " " * size, role)
            pieces += [(" " * (column - drawn), ""), shown]
            drawn = column + size
        return joined([*pieces, (" " * (self.window.columns - drawn), "")])

    def _runs(self, lane: int) -> Sequence[tuple[int, int, Cell]]:
        """Found once: every row of a lane shows the same, and so does the lane with a cursor."""
        if lane not in self.runs:
            self.runs[lane] = tuple(self._found_runs(lane))
        return self.runs[lane]

    def _found_runs(self, lane: int) -> Iterator[tuple[int, int, Cell]]:
        """First column, number of columns, and what is there: a long event takes several."""
        first, last, begun = 0, 0, None
        for column, cell in self._of_lane.get(lane, {}).items():
            if begun is not None and column == last + 1 and self._same(begun, cell):
                last = column
                continue
            if begun is not None:
                yield first, last + 1 - first, begun
            first, last, begun = column, column, cell
        if begun is not None:
            yield first, last + 1 - first, begun

    def _same(self, one: Cell, other: Cell) -> bool:
        """Whether two cells show one event that is longer than a cell."""
        same = one.span.event_id == other.span.event_id and one.span.rank == other.span.rank
        return same and one.is_long(self.window.cell_ns)

    def nearest(self, lane: int, column: int) -> Cell | None:
        """Of the cells of a lane the one closest to a column."""
        near = self._of_lane.get(lane)
        return near[min(near, key=lambda at: abs(at - column))] if near else None

    def outermost(self, lane: int, by: int) -> Cell | None:
        """The first (`by` > 0) or last cell of a lane."""
        cells = self._of_lane.get(lane)
        return cells[min(cells) if by > 0 else max(cells)] if cells else None

    def beside(self, lane: int, column: int, by: int, key: EventKey | None) -> Cell | None:
        """From a column on the next cell that shows another event than `key`."""
        column += by
        while 0 <= column < self.window.columns:
            cell = self.cells.get((lane, column))
            if cell is not None and cell.span.key != key:
                return cell
            column += by
        return None


class KeptWindows:
    """The windows drawn last: whoever zooms and pans comes back to them."""

    MOST = 32

    def __init__(self) -> None:
        self._of: OrderedDict[tuple[Window, int, int], Drawn] = OrderedDict()

    def get(self, key: tuple[Window, int, int]) -> Drawn | None:
        """Of a window and its first and last lane."""
        return self._of.get(key)

    def put(self, key: tuple[Window, int, int], drawn: Drawn) -> None:
        self._of[key] = drawn
        self._of.move_to_end(key)
        if len(self._of) > self.MOST:
            self._of.popitem(last=False)


def _block(cell: Cell, width: int, *, chosen: bool) -> tuple[str, str]:
    """A long event: its letter, and its name where there is room."""
    said = letter(cell.span.mark)
    if width >= _NAMED_CELLS:
        said = f"{said} {bare(safe(cell.span.name))}"
        said = formats.clip(said, width - 1) if cell_len(said) > width - 1 else said
    else:
        said = said * width
    return fit(said, width), "chosen" if chosen else f"{role_of(cell.span.mark)}:fill"


def _speck(cell: Cell, *, chosen: bool) -> tuple[str, str]:
    """Short events: solid, a letter, or a dot, by how much of the cell they fill."""
    role = role_of(cell.span.mark)
    if cell.busy >= _DENSE:
        return letter(cell.span.mark), "chosen" if chosen else f"{role}:fill"
    shown = letter(cell.span.mark) if cell.busy >= _SPARSE else "·"
    return shown, "chosen" if chosen else role
