from __future__ import annotations

import pytest

from neuron_explorer.tui.screens import screens
from neuron_explorer.tui.tabs import tabs

KINDS = [kind for kind in screens().values() if kind.ORDER]
OF_ONE = [kind for kind in KINDS if not kind.OF_TWO]


def row(shown: str, width: int, *, two: bool = False) -> str:
    return "".join(piece[0] for piece, _ in tabs(KINDS if two else OF_ONE, shown, width))


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("shown", [kind.NAME for kind in OF_ONE])
def test_eighty_columns_hold_a_whole_word_of_every_screen(shown: str, *, two: bool) -> None:
    line = row(shown, 80, two=two)
    assert len(line) <= 80
    for kind in KINDS if two else OF_ONE:
        assert (kind.SHORT or kind.TITLE) in line


@pytest.mark.parametrize("shown", [kind.NAME for kind in KINDS])
def test_forty_columns_hold_every_number_and_the_word_of_the_screen_in_front(shown: str) -> None:
    line = row(shown, 40, two=True)
    assert len(line) <= 40
    assert (screens()[shown].SHORT or screens()[shown].TITLE) in line.split()
    assert [word for word in line.split() if word.isdigit()] == [*"1234567890"]


def test_a_wide_terminal_has_the_titles_apart() -> None:
    assert "  5 Modules  6 Roofline  7 Memory" in row("overview", 140)


def test_the_screen_in_front_stands_out_and_a_click_finds_each() -> None:
    roles = {name: piece[1] for piece, name in tabs(KINDS, "ops", 80)}
    assert {name for name, role in roles.items() if role == "accent:fill"} == {"ops"}
    assert list(roles) == [kind.NAME for kind in KINDS]
    assert {piece[1] for piece, _ in tabs(KINDS, "evidence", 80)} == {"dim"}
