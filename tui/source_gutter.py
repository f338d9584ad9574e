"""What a line of source costs, in the cells of its gutter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuron_explorer.reports import formats
from neuron_explorer.tui.grid import Column
from neuron_explorer.tui.ink import letter, role_of
from neuron_explorer.tui.source_data import SourceLine
from neuron_explorer.tui.text import Line, Piece, fit, fit_name, safe


def line_columns(mark: Callable[[SourceLine], Piece]) -> list[Column]:
    """The gutter of a line, then its text; `mark` tells of its findings."""
    return [
        Column("", mark, 1, keep=9),
        Column("device", lambda row: _time(row, "device_ns"), 7, right=True, keep=8),
        Column("host", lambda row: _time(row, "host_ns"), 7, right=True, keep=4),
        Column("bytes", _bytes, 7, right=True, keep=3),
        Column("roof", _share, 5, right=True, keep=5),
        Column("", _letter, 1, keep=7),
        Column("line", _number, 5, right=True, keep=9),
        Column("", _code, keep=10),
    ]


def cost_of(cost: Mapping[str, Any] | None) -> tuple[int, int]:
    return (0, 0) if cost is None else (cost["device_ns"] or 0, cost["host_ns"] or 0)


def work_line(row: Mapping[str, Any], width: int) -> Line:
    """One kernel of a line: time, how often, what bounds it, and its name."""
    share = "" if row["share"] is None else _capped(row["share"])
    name_cells = max(width - 40, 8)
    return [
        (f" {letter(row['bound'])} ", role_of(row["bound"])),
        fit(short_time(row["time_ns"]), 8, "right"),
        fit(f"{row['events']:,}x", 8, "right"),
        fit("" if row["bytes"] is None else formats.bytes_(row["bytes"]), 10, "right"),
        fit(share, 7, "right"),
        "  ",
        fit_name(str(row["name"]), name_cells),
    ]


def _time(row: SourceLine, column: str) -> Piece:
    ns = None if row.cost is None else row.cost[column]
    return "" if ns is None else (short_time(ns), role_of(_bound(row)) if column[0] == "d" else "")


def short_time(ns: int) -> str:
    """A duration without the blank before its unit: `12.3ms`."""
    return formats.duration(ns).replace(" ", "")


def _bytes(row: SourceLine) -> Piece:
    count = None if row.cost is None else row.cost["bytes"]
    return "" if count is None else formats.bytes_(count).replace(" ", "")


def _share(row: SourceLine) -> Piece:
    if row.share is None:
        return ""
    return _capped(row.share)


def _capped(share: float) -> str:
    return ">100%" if share > 1 else formats.share(share).replace(" ", "")


def _bound(row: SourceLine) -> str:
    return str((row.cost or {}).get("bound") or "")


def _letter(row: SourceLine) -> Piece:
    bound = _bound(row)
    return (letter(bound), role_of(bound)) if bound else ""


def _number(row: SourceLine) -> Piece:
    return str(row.number), "accent" if row.cost is not None else "dim"


def _code(row: SourceLine) -> list[Piece]:
    if row.text is None:
        function = (row.cost or {}).get("function")
        return [(safe(f"in {function}") if function else "", "dim")]
    return list(row.text)


def file_columns() -> list[Column]:
    return [
        Column("device", lambda row: _amount(row["device_ns"]), 7, right=True, keep=9),
        Column("file", lambda row: safe(row["source_file"]), keep=10),
    ]


def _amount(ns: int | None) -> str:
    return "" if ns is None else short_time(ns)
