"""Texts with units, and SQL literals."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer.analyzers.templates import fill, fill_sql, sql_literal


@pytest.mark.parametrize(
    ("template", "value", "text"),
    [
        ("{x:ns}", 0, "0 ns"),
        ("{x:ns}", 999, "999 ns"),
        ("{x:ns}", 1_234_567, "1.2 ms"),
        ("{x:ns}", 9_960, "10 us"),
        ("{x:ns}", 999_700, "1.0 ms"),
        ("{x:ns}", 4_200_000_000_000, "4200 s"),
        ("{x:bytes}", 34_000_000, "34 MB"),
        ("{x:rate}", 3_350_000_000_000, "3.4 TB/s"),
        ("{x:share}", 0.41, "41 %"),
        ("{x:share}", 0.004, "0.4 %"),
        ("{x:count}", 12_345, "12,345"),
        ("{x:count step}", 1, "1 step"),
        ("{x:count eager copy}", 12_345, "12,345 eager copies"),
        ("{x:count launch}", 0, "0 launches"),
        ("{x:count op}", None, "unknown"),
        ("{x:file}", "/a/b/c/d.py", "c/d.py"),
        ("{x:ns}", None, "unknown"),
        ("{x}", "plain", "plain"),
        ("at[[ line {x}]] end", None, "at end"),
        ("at[[ line {x}]] end", 3, "at line 3 end"),
        ("x[0] of {x}", 3, "x[0] of 3"),
    ],
)
def test_reads_as_a_person_writes(template: str, value: object, text: str) -> None:
    assert fill(template, {"x": value}) == text


def test_values_are_never_read_as_templates() -> None:
    assert fill("{x}", {"x": "{y} [[z]]"}) == "{y} [[z]]"


def test_a_unit_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="has no unit 'ns'"):
        fill("{x:ns}", {"x": "soon"})


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.none() | st.booleans() | WHOLE | WORDS | st.lists(WORDS))
def test_a_literal_means_the_value_itself(value: object) -> None:
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {sql_literal(value)}").fetchall() == [(value,)]


def test_a_text_cannot_leave_its_literal() -> None:
    row = {"name": "x' OR 'a' = 'a"}
    assert fill_sql("name = {name}", row) == "name = 'x'' OR ''a'' = ''a'"
