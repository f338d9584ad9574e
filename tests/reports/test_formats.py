from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from neuron_explorer.reports import formats

HOSTILE = [
    "[bold]x[/red]",
    "\x1b[31mred\x1b[0m",
    "a\tb\nc",
    "x" * 5_000,
    "中文字" * 40,
    "\u202eevil",
]


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (None, "unknown"),
        (0, "0 ns"),
        (999, "999 ns"),
        (12_345, "12.3 us"),
        (999_960, "1.00 ms"),
        (1_234_567, "1.23 ms"),
        (5_000_000_000, "5 s"),
        (3_600_000_000_000, "3,600 s"),
    ],
)
def test_a_duration_has_three_digits_and_a_fitting_unit(ns: int | None, said: str) -> None:
    assert formats.duration(ns) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (800_000, 1_920_000, "0.80-1.92 ms"),
        (1_000_000, 1_000_000, "1 ms"),
        (None, 3_000, "3 us"),
        (3_000, None, "3 us"),
        (None, None, "unknown"),
    ],
)
def test_a_range_has_one_unit(low: int | None, high: int | None, said: str) -> None:
    assert formats.duration_range(low, high) == said


def test_sizes_and_rates_are_decimal() -> None:
    assert formats.bytes_(1_210_000_000) == "1.21 GB"
    assert formats.bandwidth(3.35e12) == "3.35 TB/s"
    assert formats.flop_rate(989e12) == "989 TFLOP/s"
    assert formats.flops(None) == "unknown"


@pytest.mark.parametrize(
    ("part", "said"), [(0.0, "0 %"), (0.004, "<1 %"), (0.614, "61 %"), (None, "unknown")]
)
def test_a_small_share_is_not_called_zero(part: float | None, said: str) -> None:
    assert formats.share(part) == said


@given(st.one_of(st.none(), st.floats(allow_nan=False)), st.integers(1, 60))
def test_a_bar_always_fills_its_width(part: float | None, width: int) -> None:
    assert cell_len(formats.bar(part, width)) == width


@given(st.text(), st.integers(1, 60))
def test_a_name_is_printable_and_fits(text: str, width: int) -> None:
    shown = formats.name(text, width)
    assert shown.isprintable()
    assert cell_len(shown) <= width


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_stays_text(text: str) -> None:
    assert formats.name(text).isprintable()
    assert cell_len(formats.name(text, 30)) <= 30


def test_a_long_name_keeps_both_ends() -> None:
    assert formats.shorten("begin" + "x" * 100 + "end", 12) == "begin…xxxend"


def test_a_place_keeps_its_line() -> None:
    assert formats.place("/very/long/path/to/the/model.py", 42, 20).endswith("model.py:42")
    assert formats.place(None, 42) == ""


def test_ascii_glyphs_take_the_same_cells() -> None:
    page = f"{formats.bar(0.37, 20)} ● ▲ · → …"
    assert formats.plain(page).isascii()
    assert cell_len(formats.plain(page)) == cell_len(page)
