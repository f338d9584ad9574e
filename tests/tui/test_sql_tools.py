"""What the SQL screen offers beside running a query: ends of words, and rows as files."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from neuron_explorer.errors import OutputError, UsageError
from neuron_explorer.sandbox import QueryResult
from neuron_explorer.tui import export
from neuron_explorer.tui.sql_words import candidates, completed
from neuron_explorer.view_files import views


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ("SELECT * FROM roof", "", "roofline"),
        ("SELECT * FROM lines JOIN kern", "", "kernels"),
        ("DESCRIBE rank_", "", "rank_spans"),
        ("SELECT device_ti", " FROM roofline", "device_time_ns"),
        ("select SOURCE_L", " from lines", "source_line"),
        ("SEL", "", "SELECT"),
        ("SELECT * FROM lines WHERE 1 OR", "", "ORDER"),
    ],
)
def test_words_end_as_views_and_their_columns_do(before: str, after: str, first: str) -> None:
    assert candidates(before, before + after)[0] == first


def test_nothing_is_offered_where_no_word_has_begun_or_it_is_whole() -> None:
    assert not candidates("SELECT ", "SELECT  FROM lines")
    assert not candidates("SELECT count(*) FROM zz", "")
    assert "lines" not in candidates("SELECT * FROM lines", "")


def test_what_all_share_comes_first_then_the_first_of_them() -> None:
    assert completed("FROM ro", ["roofline"]) == "roofline"
    assert completed("SELECT sou", ["source_file", "source_line"]) == "source_"
    assert completed("SELECT source_", ["source_file", "source_line"]) == "source_file"


def test_every_view_and_column_can_be_reached() -> None:
    for view in views().values():
        if len(view.name) > 1:
            assert view.name in candidates(f"SELECT 1 FROM {view.name[:-1]}", "")
        for column in view.columns:
            if len(column) > 1:
                assert column in candidates(f"SELECT {column[:-1]}", f" FROM {view.name}")


FOUND = QueryResult(
    ["name", "n", "n"], [("核,\n", 1, None), (None, 2, 2.5), ("x" * 50, 3, 1.0)], truncated=False
)


def test_rows_become_the_file_that_its_name_says(tmp_path: Path) -> None:
    export.write_rows(FOUND, tmp_path / "r.csv", [])
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1] == ["核,\n", "1", ""]
    export.write_rows(FOUND, tmp_path / "r.parquet", [])
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column_names == ["name", "n", "n_2"]
    assert table.to_pylist()[1] == {"name": None, "n": 2, "n_2": 2.5}
    assert export.clipboard_text(FOUND).splitlines()[0] == "name,n,n"
    export.write_rows(QueryResult(["a"], [], truncated=False), tmp_path / "none.parquet", [])
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    trace = tmp_path / "trace.parquet"
    trace.write_bytes(b"of value")
    with pytest.raises(UsageError, match="is the trace and would be overwritten"):
        export.write_rows(FOUND, trace, [trace])
    assert trace.read_bytes() == b"of value"
    with pytest.raises(UsageError, match=r"neither \.csv nor \.parquet"):
        export.write_rows(FOUND, tmp_path / "rows.txt", [])
    for name in ("nowhere/r.csv", "nowhere/r.parquet"):
        with pytest.raises(OutputError, match="cannot be written"):
            export.write_rows(FOUND, tmp_path / name, [])
    mixed = QueryResult(["a"], [(1,), ("text",)], truncated=False)
    with pytest.raises(OutputError, match="cannot be written"):
        export.write_rows(mixed, tmp_path / "m.parquet", [])
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(UsageError, match="too many for a terminal's clipboard"):
        export.clipboard_text(QueryResult(["a"], [("x" * 200_000,)], truncated=False))
