from __future__ import annotations

import pytest

from neuron_explorer.cost_notes import NOTES, WHY_UNLINKED
from neuron_explorer.tui.event_facts import in_words
from neuron_explorer.tui.lane_drawing import ruler
from neuron_explorer.tui.timeline_data import Window


@pytest.mark.parametrize("code", [*NOTES, *WHY_UNLINKED])
def test_every_code_of_a_cost_note_is_said_in_words(code: str) -> None:
    assert " " in in_words(code)
    assert code not in in_words(code).split()


def test_codes_are_said_one_after_the_other_and_an_unknown_one_as_it_is() -> None:
    assert in_words("no_op; of_a_later_version") == (
        "no framework op is known that caused this work; of_a_later_version"
    )


@pytest.mark.parametrize("columns", range(1, 120))
def test_the_ruler_says_no_time_in_part(columns: int) -> None:
    line = ruler(Window(5_000_000, 789_000, columns), 0, 10, None)
    text = "".join(piece if isinstance(piece, str) else piece[0] for piece in line)
    assert len(text) == 10 + columns
    assert "…" not in text[24:]
