"""A log-log plot in cells: lines first, points over them, the largest point on top."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neuron_explorer.tui.text import Line, joined


@dataclass(frozen=True)
class Point:
    """A place on the plot; both coordinates above 0."""

    x: float
    y: float
    weight: float
    """Its share of all, 0 to 1: how large it is drawn."""
    role: str
    key: int


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis in a number of cells."""

    low: float
    high: float
    cells: int

    def cell(self, value: float) -> int:
        """Cell of a value; outside 0 to `cells - 1` where it is off the axis."""
        span = math.log10(self.high / self.low) or 1.0
        return math.floor(math.log10(value / self.low) / span * (self.cells - 1) + 0.5)

    def value(self, cell: int) -> float:
        share = cell / max(self.cells - 1, 1)
        return float(self.low * (self.high / self.low) ** share)

    def ticks(self, least_cells: int) -> list[float]:
        """Powers of ten on the axis, so far apart that a label of `least_cells` fits."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        decade = (self.cells - 1) / (math.log10(self.high / self.low) or 1.0)
        step = max(math.ceil(least_cells / max(decade, 0.1)), 1)
        return [10.0**power for power in range(first, last + 1) if power % step == 0]


Written = Callable[[float], str]
_X_LABEL_CELLS = 8

_SIZES = ((0.2, "@"), (0.05, "O"), (0.01, "o"), (0.0, "."))
"""From which share of the time a point is drawn as large as that."""


class Plot:
    """Cells to draw into; y grows upwards."""

    def __init__(self, x: Scale, y: Scale) -> None:
        self.x, self.y = x, y
        self._cells: dict[tuple[int, int], tuple[str, str]] = {}
        self._labels: dict[int, int] = {}
        """Leftmost column that a label takes, by row."""

    def roof(self, slope: float, flat: float) -> None:
        """min(slope * x, flat)."""
        for column in range(self.x.cells):
            x = self.x.value(column)
            rising = slope * x < flat
            self._put(column, self.y.cell(min(slope * x, flat)), "/" if rising else "─", "rule")

    def label(self, flat: float, label: str) -> None:
        """Name a roof at its right end, beside the names of those as high."""
        row = self.y.cell(flat)
        start = self._labels.get(row, self.x.cells) - len(label) - 1
        self._labels[row] = start
        for place, character in enumerate(label):
            self._put(start + place, row, character, "dim")

    def points(self, points: Sequence[Point], chosen: int | None) -> None:
        """Draw them, the heavier over the lighter and the chosen one over all."""
        for point in sorted(points, key=lambda p: (p.key == chosen, p.weight)):
            sign = next(sign for least, sign in _SIZES if point.weight >= least)
            role = "chosen" if point.key == chosen else point.role
            self._put(self.x.cell(point.x), self.y.cell(point.y), sign, role)

    def lines(self) -> list[Line]:
        """From the top down."""
        return [
            joined(self._cells.get((column, row), (" ", "")) for column in range(self.x.cells))
            for row in range(self.y.cells - 1, -1, -1)
        ]

    def with_axes(self, up: Written, across: Written, unit: str, label_cells: int) -> list[Line]:
        """The lines with what they stand for at their left end, and the axis below them.

        Args:
            up: Writes a value of y.
            across: Writes a value of x.
            unit: Of x; stands at the right end of its axis.
            label_cells: Width of the labels at the left.
        """
        said = {self.y.cell(value): up(value) for value in self.y.ticks(2)}
        lines: list[Line] = []
        for row, line in zip(range(self.y.cells - 1, -1, -1), self.lines(), strict=True):
            lines.append([(f"{said.get(row, ''):>{label_cells - 1}} ", "dim"), *line])
        return [*lines, [(" " * label_cells + self._below(across, unit), "dim")]]

    def _below(self, across: Written, unit: str) -> str:
        axis = ""
        for value in self.x.ticks(_X_LABEL_CELLS):
            column, label = self.x.cell(value), across(value)
            if len(axis) <= column and column + len(label) + len(unit) < self.x.cells:
                axis += " " * (column - len(axis)) + label
        return axis + f"{unit:>{max(self.x.cells - len(axis), 0)}}"

    def _put(self, column: int, row: int, sign: str, role: str) -> None:
        if 0 <= column < self.x.cells and 0 <= row < self.y.cells:
            self._cells[column, row] = (sign, role)
