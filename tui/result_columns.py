"""Columns for the rows of any query, as wide as what the first of them hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len

from neuron_explorer.sandbox import QueryResult
from neuron_explorer.tui.grid import Column
from neuron_explorer.tui.text import Piece, safe

_WIDEST = 40
_LOOKED_AT = 100


def result_columns(found: QueryResult, first: int) -> list[Column]:
    """Those from `first` on: the ones before are scrolled away."""
    columns = []
    for place in range(first, len(found.columns)):
        name = safe(found.columns[place], _WIDEST)
        some = [row[place] for row in found.rows[:_LOOKED_AT]]
        widest = max([cell_len(name), *(cell_len(_shown(value)) for value in some)], default=4)
        right = all(value is None or isinstance(value, int | float) for value in some)
        columns.append(
            Column(
                name,
                lambda row, place=place: _cell(row, place),  # type: ignore[misc]
                min(widest, _WIDEST),
                right=right,
                keep=-place,
            )
        )
    return columns


def _cell(row: Sequence[Any], place: int) -> Piece:
    return ("NULL", "dim") if row[place] is None else _shown(row[place])


def _shown(value: object) -> str:
    return safe(str(value) if value is not None else "NULL", _WIDEST)
