"""An amount over time as a filled area: one column a cell, eight levels a row."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_explorer.tui.text import Line, joined

_LEVELS = " ▁▂▃▄▅▆▇█"


def area(amounts: Sequence[float | None], height: int, role: str, mark: int | None) -> list[Line]:
    """`height` lines from the top down; what is not known stays blank.

    Args:
        amounts: One a column, each 0 or more; the largest reaches the top.
        height: Rows.
        role: Of the filled cells.
        mark: Column to draw as the peak.
    """
    top = max((amount for amount in amounts if amount is not None), default=0) or 1
    # what is there at all must show, however small beside the peak
    levels = [
        max(round(amount / top * height * 8), 1) if amount else 0
        for amount in (each or 0 for each in amounts)
    ]
    lines: list[Line] = []
    for row in range(height - 1, -1, -1):
        line: list[tuple[str, str]] = []
        for column, level in enumerate(levels):
            drawn = _LEVELS[min(max(level - row * 8, 0), 8)]
            line.append((drawn, "bad" if column == mark else role))
        lines.append(joined(line))
    return lines
