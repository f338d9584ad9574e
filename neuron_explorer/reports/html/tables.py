"""The report's tables: what stands in a cell, and by what its column sorts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from neuron_explorer.reports import formats
from neuron_explorer.reports.html.facts import Facts, Row


@dataclass(frozen=True)
class Cell:
    text: str
    order: float | str | None
    """What the column sorts by; None = unknown, always last."""
    bar: float | None = None
    """A share to draw behind the text, 0 to 1."""


@dataclass(frozen=True)
class Column:
    title: str
    number: bool
    """Whether it is set to the right and sorts by amount."""
    cell: Callable[[Row], Cell]
    wide: bool = False
    """Whether it holds names, which may be long."""


@dataclass(frozen=True)
class Table:
    """Rows ready to show."""

    id: str
    title: str
    says: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    of_all: int
    """Rows that there are, shown or not."""
    sorted_by: int | None = None
    """Column that the rows are sorted by at first, largest first."""


def tables(facts: Facts, *, many_ranks: bool) -> list[Table]:
    """Those that have a row."""
    rank = [_number("rank", "rank", str)] if many_ranks else []
    made = (
        _table("lines", _LINES_SAY, rank + _LINES, facts.lines, "device time"),
        _table("kernels", _KERNELS_SAY, rank + _KERNELS, facts.kernels, "time"),
        _table("modules", _MODULES_SAY, rank + _MODULES, facts.modules, "device time"),
        _table("steps", _STEPS_SAY, rank + _STEPS, facts.steps, None),
    )
    return [table for table in made if table.rows]


def _table(
    name: str, says: str, columns: Sequence[Column], rows: Sequence[Row], by: str | None
) -> Table:
    titles = [column.title for column in columns]
    return Table(
        id=name,
        title=name.capitalize(),
        says=says,
        columns=columns,
        rows=[[column.cell(row) for column in columns] for row in rows],
        of_all=rows[0]["of_all"] if rows else 0,
        sorted_by=None if by is None else titles.index(by),
    )


def _number(title: str, key: str, write: Callable[[Any], str]) -> Column:
    def cell(row: Row) -> Cell:
        return Cell("" if row[key] is None else write(row[key]), row[key])

    return Column(title, number=True, cell=cell)


def _share(title: str, key: str) -> Column:
    def cell(row: Row) -> Cell:
        part = row[key]
        return Cell("" if part is None else formats.share(part), part, bar=part)

    return Column(title, number=True, cell=cell)


def _word(title: str, key: str, *, wide: bool = False) -> Column:
    def cell(row: Row) -> Cell:
        text = formats.name(row[key] or "")
        return Cell(text, text or None)

    return Column(title, number=False, cell=cell, wide=wide)


def _place(row: Row) -> Cell:
    text = formats.place(row["source_file"], row["source_line"])
    return Cell(text, text)


_TIME = formats.duration
_LINES_SAY = "Source lines by the device time of the work they caused; work counts kernels."
_LINES = [
    Column("line", number=False, cell=_place, wide=True),
    _number("device time", "device_ns", _TIME),
    _share("share", "share"),
    _word("function", "source_function"),
    _number("host time", "host_ns", _TIME),
    _number("work", "work_events", formats.count),
    _number("bytes", "bytes", formats.bytes_),
    _number("FLOPs", "flops", formats.flops),
    _word("bound", "bound"),
]
_KERNELS_SAY = "Kernels and copies by name; on a CPU, ops."
_KERNELS = [
    _word("kernel", "name", wide=True),
    _number("time", "total_ns", _TIME),
    _share("share", "share"),
    _number("launches", "events", formats.count),
    _number("mean", "mean_ns", _TIME),
    _number("longest", "max_ns", _TIME),
    _number("bytes", "bytes", formats.bytes_),
    _number("FLOPs", "flops", formats.flops),
    _word("device", "device"),
]
_MODULES_SAY = "Modules of the model, each without the modules inside it; work counts kernels."
_MODULES = [
    _word("module", "module", wide=True),
    _number("device time", "device_ns", _TIME),
    _number("host time", "host_ns", _TIME),
    _number("calls", "calls", formats.count),
    _number("work", "work_events", formats.count),
    _number("bytes", "bytes", formats.bytes_),
    _number("FLOPs", "flops", formats.flops),
    _word("class", "module_class"),
]
_STEPS_SAY = "Training steps on the host, and what the devices did meanwhile."
_STEPS = [
    _number("step", "step", str),
    _number("time", "duration_ns", _TIME),
    _number("devices busy", "device_busy_ns", _TIME),
    _number("idle", "idle_ns", _TIME),
    _number("compiling", "compile_ns", _TIME),
    _number("waiting for input", "input_wait_ns", _TIME),
    _number("launches", "launches", formats.count),
    _number("work", "work_events", formats.count),
]
