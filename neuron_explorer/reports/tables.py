"""Rows and columns as text, JSON, CSV or markdown. Numbers stay as they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from neuron_explorer.reports import formats, json_report, layout

Rows = Sequence[Sequence[object]]

GAP = 2
NARROWEST = 6
"""A column narrower than this says nothing."""
LONGEST_CELL = 200


@dataclass(frozen=True)
class Table:
    """A result: column names and rows in the order of the query."""

    columns: Sequence[str]
    rows: Rows
    truncated: bool = False
    """Whether there were more rows than asked for."""


def table_json(table: Table) -> str:
    """`{"columns":[...],"rows":[[...]],"truncated":false}` on one line."""
    return (
        json_report.compact(
            {
                "columns": list(table.columns),
                "rows": [list(row) for row in table.rows],
                "truncated": table.truncated,
            }
        )
        + "\n"
    )


def table_csv(table: Table) -> str:
    """CSV with a header line; NULL is an empty field, a list is JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([[_csv_cell(value) for value in row] for row in table.rows])
    return out.getvalue()


def table_markdown(table: Table) -> str:
    """A markdown table."""
    lines = [_markdown_row(table.columns), _markdown_row(["---"] * len(table.columns))]
    lines += [_markdown_row([_cell(value) for value in row]) for row in table.rows]
    return "\n".join(lines) + "\n"


def markdown_text(content: str) -> str:
    """A name that markdown shows as it is."""
    shown = formats.name(content)
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~" else c for c in shown)


def table_text(table: Table, width: int | None) -> RenderableType:
    """Columns side by side where they fit the width, else one value a line.

    Args:
        table: What to show.
        width: Cells a line has; None = as many as it takes, for a pipe or a file.
    """
    cells = [[_cell(value) for value in row] for row in table.rows]
    widths = [_column_width(table, cells, i) for i in range(len(table.columns))]
    if width is None or sum(widths) + GAP * len(widths) <= width:
        return _side_by_side(table, cells, widths)
    narrowed = _narrow(widths, width - GAP * len(widths))
    cut = [new for new, old in zip(narrowed, widths, strict=True) if new < old]
    if min(cut) < NARROWEST and len(widths) > 1:
        return _one_by_one(table, cells, width)
    return _side_by_side(table, cells, narrowed)


def natural_width(table: Table) -> int:
    """Cells a line needs to show every column whole."""
    cells = [[_cell(value) for value in row] for row in table.rows]
    columns = range(len(table.columns))
    return sum(_column_width(table, cells, i) + GAP for i in columns) + 1


def _side_by_side(
    table: Table, cells: Sequence[Sequence[str]], widths: Sequence[int]
) -> RenderableType:
    grid = RichTable.grid(padding=(0, GAP, 0, 0))
    for i, width in enumerate(widths):
        grid.add_column(justify="right" if _is_number(table, i) else "left", width=width)
    grid.add_row(*[_fit(name, w, "bold") for name, w in zip(table.columns, widths, strict=True)])
    for row in cells:
        grid.add_row(*[_fit(cell, w) for cell, w in zip(row, widths, strict=True)])
    return grid


def _one_by_one(table: Table, cells: Sequence[Sequence[str]], width: int) -> RenderableType:
    label = max(min(max(map(cell_len, table.columns)), width // 3), NARROWEST)
    records: list[RenderableType] = []
    for number, row in enumerate(cells, 1):
        records.append(Text(f"row {number}", style="bold"))
        pairs = zip(table.columns, row, strict=True)
        rows = [(formats.shorten(name, label), Text(cell)) for name, cell in pairs]
        records.append(layout.pairs(rows, 2))
    return Group(*records)


def _column_width(table: Table, cells: Sequence[Sequence[str]], column: int) -> int:
    lengths = [cell_len(row[column]) for row in cells]
    return min(max([cell_len(formats.name(table.columns[column])), *lengths]), LONGEST_CELL)


def _narrow(widths: Sequence[int], room: int) -> list[int]:
    """Take cells from the widest columns until all fit."""
    narrowed = list(widths)
    while sum(narrowed) > room and max(narrowed) > 1:
        narrowed[narrowed.index(max(narrowed))] -= 1
    return narrowed


def _fit(content: str, width: int, style: str = "") -> Text:
    return Text(formats.name(content, width), style=style, no_wrap=True)


def _is_number(table: Table, column: int) -> bool:
    values = [row[column] for row in table.rows if row[column] is not None]
    return bool(values) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in values
    )


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return formats.name(value)
    return formats.name(str(value) if isinstance(value, int | float) else _as_text(value))


def _csv_cell(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json_report.compact(value) if isinstance(value, bool) else _as_text(value)


def _as_text(value: object) -> str:
    """Lists and structs as JSON, everything else as its own text."""
    if isinstance(value, list | tuple | dict):
        return json_report.compact(value)
    return str(value)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(markdown_text(cell) for cell in cells)} |"
