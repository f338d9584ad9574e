"""The check of pictures itself: what it lets pass, and what it says when one is another."""

from __future__ import annotations

import re

import pytest
from golden_pictures import GOLDEN, check_picture, plain_picture

NAME = "overview-80x24"


def kept() -> str:
    return (GOLDEN / f"{NAME}.svg").read_text("utf-8")


def test_the_number_of_an_app_fonts_and_pieces_of_one_ground_are_no_difference(
    request: pytest.FixtureRequest,
) -> None:
    drawn = re.sub(r'class="(r\d+|matrix)"', r'class="terminal-12-\1"', kept())
    drawn = drawn.replace("<style>", "<style>\n@font-face { src: local(x) }", 1)
    ground = re.search(r'<rect fill="#262b33" x="0" y="1.5" width="976.0" height="24.65"/>', drawn)
    assert ground is not None
    first, second = (
        f'<rect fill="#262b33" x="{x}" y="1.5" width="{width}" height="24.65"'
        ' shape-rendering="crispEdges"/>'
        for x, width in ((0, 12.2), (12.2, 963.8))
    )
    check_picture(NAME, drawn.replace(ground[0], first + second), request)
    assert plain_picture(kept()) == kept()


@pytest.mark.parametrize(
    ("was", "is_", "said"),
    [
        ("{ fill: #7fbf6b }", "{ fill: #000000 }", "only its colours"),
        ('fill="#e5a445" x="561.2"', 'fill="#e5a446" x="561.2"', "only its colours"),
        ("worst&#160;line", "worst&#160;lime", "its text"),
    ],
)
def test_another_colour_or_letter_fails_and_says_where_to_look(
    was: str, is_: str, said: str, request: pytest.FixtureRequest
) -> None:
    drawn = kept()
    assert was in drawn
    with pytest.raises(pytest.fail.Exception) as failed:
        check_picture(NAME, drawn.replace(was, is_), request)
    message = str(failed.value)
    assert said in message
    assert str(GOLDEN / f"{NAME}.svg") in message
    assert "--update-pictures" in message
    assert is_.rsplit(maxsplit=1)[-1] in message or "lime" in message
