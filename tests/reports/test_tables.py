from __future__ import annotations

import csv
import io
import json
import math
from datetime import date
from decimal import Decimal

import pytest
from rich.cells import cell_len

from neuron_explorer.reports import console
from neuron_explorer.reports.tables import (
    Table,
    table_csv,
    table_json,
    table_markdown,
    table_text,
)

TABLE = Table(["name", "total_ns"], [("[bold]x[/red]", 12), (None, 3_000_000_000)])


def shown(table: Table, width: int) -> str:
    return console.render([table_text(table, width)], console.Page(width))


def test_json_is_exactly_columns_rows_truncated() -> None:
    assert table_json(TABLE) == (
        '{"columns":["name","total_ns"],'
        '"rows":[["[bold]x[/red]",12],[null,3000000000]],"truncated":false}\n'
    )


def test_every_value_of_duckdb_becomes_json() -> None:
    values = [
        2**100,
        Decimal("1.50"),
        Decimal("7"),
        math.nan,
        math.inf,
        date(2026, 1, 2),
        b"\x00\xff",
        [1, {"a": None}],
        True,
    ]
    rows = json.loads(table_json(Table(["c"], [(v,) for v in values])))["rows"]
    assert [row[0] for row in rows] == [
        2**100,
        1.5,
        7,
        "nan",
        "inf",
        "2026-01-02",
        "00ff",
        [1, {"a": None}],
        True,
    ]


def test_csv_reads_back() -> None:
    table = Table(["a", "b"], [('say "hi"\n', None), ([1, 2], False)])
    rows = list(csv.reader(io.StringIO(table_csv(table))))
    assert rows == [["a", "b"], ['say "hi"\n', ""], ["[1,2]", "false"]]


def test_text_shows_markup_as_it_is_and_null_as_null() -> None:
    lines = shown(TABLE, 80).splitlines()
    assert lines == [
        "name             total_ns",
        "[bold]x[/red]          12",
        "NULL           3000000000",
    ]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_wide_result_becomes_one_value_a_line(width: int) -> None:
    table = Table([f"column_{i}" for i in range(30)], [tuple(f"中文 value {i}" for i in range(30))])
    page = shown(table, width)
    assert page.startswith("row 1\n")
    assert all(cell_len(line) <= width for line in page.splitlines())


def test_text_of_no_rows_still_names_the_columns() -> None:
    assert shown(Table(["a", "b"], []), 80) == "a  b\n"


def test_markdown_escapes_what_it_would_format() -> None:
    text = table_markdown(Table(["a|b"], [("<img> `x` __init__",)]))
    assert text.splitlines()[0] == "| a\\|b |"
    assert "\\<img\\> \\`x\\` \\_\\_init\\_\\_" in text
