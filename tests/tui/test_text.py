from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from neuron_explorer.tui.ink import Ink
from neuron_explorer.tui.plain import AsciiLines, ascii_only
from neuron_explorer.tui.text import (
    Line,
    code,
    cut,
    fit,
    fit_name,
    paragraph,
    place,
    safe,
    share_of_cells,
    short_name,
    strip,
    wrap,
)

NASTY = (
    "[memory]",
    "[pl][profile]run_batch",
    "foo[bar baz]",
    "x_[/red]_0",
    "x[/",
    "tab\there",
    "esc\x1b[31mred\x1b[0m",
    "bell\a\b\r\n\x00end",
    "\x9b31m C1",
    "核函数" * 10,
    "👩‍🚀 emoji 🚀",
    "e\u0301 combining",
    "\u202eright to left",
    "n" * 5_000,
    "",
)
NAMES = st.one_of(st.sampled_from(NASTY), st.text(max_size=80))


@given(NAMES, st.integers(0, 60), st.sampled_from(["left", "right"]))
def test_fit_is_exactly_as_wide_as_asked(name: str, width: int, align: str) -> None:
    assert cell_len(fit(safe(name), width, align)) == width
    assert cell_len(fit_name(name, width)) == width


@given(NAMES, st.integers(1, 60))
def test_nothing_that_moves_the_cursor_gets_through(name: str, width: int) -> None:
    drawn = strip([(safe(name, width), "memory"), code(name)], width, Ink())
    assert drawn.cell_length == width == sum(cell_len(segment.text) for segment in drawn)
    assert all(character.isprintable() for segment in drawn for character in segment.text)


@pytest.mark.parametrize(
    "name", [n for n in NASTY if n.isascii() and n.isprintable() and n[:3] != "nnn"]
)
def test_markup_is_text(name: str) -> None:
    assert "".join(segment.text for segment in strip([safe(name)], 40, Ink())).rstrip() == name


def test_control_bytes_show_as_symbols() -> None:
    assert safe("a\x1b[31mb\tc") == r"a\x1b[31mb\tc"


def test_a_long_name_keeps_both_ends() -> None:
    shown = safe("begin" + "x" * 5_000 + "end", 21)
    assert (shown[:5], shown[-3:], cell_len(shown)) == ("begin", "end", 21)
    assert "…" in shown


@given(st.text(max_size=200), st.integers(1, 40))
def test_wrapped_lines_fit_and_lose_no_word(text: str, width: int) -> None:
    lines = wrap(safe(text), width)
    assert all(cell_len(line) <= max(width, 2) for line in lines)
    assert "".join("".join(lines).split()) == "".join(safe(text).split())


def test_a_paragraph_keeps_its_own_line_breaks() -> None:
    assert paragraph("a b\nc", 40, "dim", indent=1) == [[" ", ("a b", "dim")], [" ", ("c", "dim")]]


@given(st.lists(st.floats(0, 1e12), max_size=8), st.integers(0, 200))
def test_cells_are_shared_out_whole(amounts: list[float], width: int) -> None:
    given_cells = share_of_cells(amounts, width)
    assert sum(given_cells) == (width if sum(amounts) > 0 else 0)
    some = sum(amount > 0 for amount in amounts)
    if some <= width:
        assert all(cells > 0 for cells, amount in zip(given_cells, amounts, strict=True) if amount)


def test_a_place_gives_its_folders_before_its_line() -> None:
    file = "/opt/venv/torchvision/models/resnet.py"
    assert place(file, 89, 80) == f"{file}:89"
    assert place(file, 89, 20) == "models/resnet.py:89"
    assert place(file, 89, 12) == "resnet.py:89"


@given(NAMES)
def test_the_c_locale_sees_ascii_of_the_same_width(name: str) -> None:
    line = strip([safe(name), "█▌░→●▸│─"], 60, Ink())
    plain = line.apply_filter(AsciiLines(), None)  # type: ignore[arg-type]
    assert all(segment.text.isascii() for segment in plain)
    assert sum(len(segment.text) for segment in plain) == 60


def test_the_locale_decides_what_may_be_drawn() -> None:
    assert ascii_only({})
    assert ascii_only({"LANG": "C", "LC_CTYPE": "C.UTF-8"}), "Python coerced LC_CTYPE"
    assert ascii_only({"LANG": "en_US.UTF-8", "LC_ALL": "C"})
    assert not ascii_only({"LANG": "C.UTF-8"})
    assert not ascii_only({"LC_CTYPE": "de_DE.utf8"})


def test_without_color_no_style_has_one() -> None:
    ink = Ink(color=False)
    for role in ("memory", "memory:fill", "cursor", "chosen", "bad", "bar", "dim"):
        assert ink(role).color is None
        assert ink(role).bgcolor is None
    assert ink("cursor").reverse
    assert ink("memory:fill").reverse


KERNEL = (
    "void at::native::(anonymous namespace)::batch_norm_kernel<c10::BFloat16, float>"
    "(at::GenericPackedTensorAccessor<float, 3ul>)"
)


def test_of_a_long_kernel_of_cpp_the_part_that_tells_it_from_others_stays() -> None:
    assert short_name(KERNEL, 200) == KERNEL
    assert short_name(KERNEL, 30) == "batch_norm_kernel<BFloat16, f…"
    assert short_name("igemm_fwd_gtcx3_nhwc_bf16_gkgs", 12) == "igemm…6_gkgs"


@pytest.mark.parametrize(
    ("line", "width", "left"),
    [
        ([("ab", "x"), "cd"], 4, [("ab", "x"), "cd"]),
        ([("ab", "x"), "cd"], 3, [("ab", "x"), ("…", "")]),
        ([("ab", "x"), "cd"], 2, [("a…", "x")]),
        ([], 2, []),
    ],
)
def test_a_line_that_is_cut_says_so(line: Line, width: int, left: Line) -> None:
    assert list(cut(line, width)) == left


def test_a_number_and_its_unit_are_not_parted() -> None:
    assert wrap("it took 389 ms, more", 12) == ["it took", "389 ms, more"]
    assert wrap("at 36 % of 5 GB/s", 7) == ["at 36 %", "of", "5 GB/s"]
    assert wrap("in 3 steps", 6) == ["in 3", "steps"]
