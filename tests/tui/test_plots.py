from __future__ import annotations

import pytest

from neuron_explorer.tui.area import area
from neuron_explorer.tui.plot import Plot, Point, Scale
from neuron_explorer.tui.text import Line


def text(lines: list[Line]) -> list[str]:
    return ["".join(p if isinstance(p, str) else p[0] for p in line) for line in lines]


def test_an_area_reaches_the_top_at_its_largest_and_leaves_the_unknown_blank() -> None:
    assert text(area([8, 16, 1, None, 0], 2, "copy", 1)) == [" █   ", "██▁  "]
    assert area([8, 16], 1, "copy", 1)[0][1] == ("█", "bad")


def test_an_area_of_nothing_is_blank() -> None:
    assert text(area([0, None], 2, "copy", None)) == ["  ", "  "]
    assert text(area([1_000_000, 1], 1, "copy", None)) == ["█▁"], "what is there must show"


@pytest.mark.parametrize(("value", "cell"), [(1, 0), (10, 5), (100, 10), (1_000, 15)])
def test_a_decade_is_as_long_as_the_next(value: float, cell: int) -> None:
    assert Scale(1, 100, 11).cell(value) == cell


def test_roofs_points_and_the_chosen_one() -> None:
    plot = Plot(Scale(1, 100, 11), Scale(1, 100, 5))
    plot.roof(1.0, 10.0)
    plot.label(10.0, "fp32")
    plot.points(
        [Point(1, 100, 0.5, "memory", 0), Point(1, 100, 0.1, "copy", 1), Point(0.1, 1, 1, "", 2)],
        chosen=1,
    )
    lines = plot.lines()
    assert text(lines)[2].endswith("fp32─")
    assert text(lines)[0] == "O          ", "the one under the cursor lies on top"
    assert lines[0][0] == ("O", "chosen")
    assert len(lines[0]) == 2, "one piece a role, not one a cell"
    assert text(lines)[4].startswith("/")


def test_roofs_of_one_height_are_named_side_by_side() -> None:
    plot = Plot(Scale(1, 100, 20), Scale(1, 100, 3))
    for name in ("fp16", "bf16"):
        plot.label(100.0, name)
    assert text(plot.lines())[0].strip() == "bf16 fp16"
