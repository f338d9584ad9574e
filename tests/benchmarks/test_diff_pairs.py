"""`diff` on the labelled set: the line that somebody changed comes first."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch to capture")

from diff_pairs import NOT_OF_A_STEP, named
from pairs import FOLDER, Pair, one_thread, pairs, read_pair

ALWAYS = ("clipping_loop", "handwritten_gelu")


@pytest.mark.parametrize("name", ALWAYS)
def test_the_changed_line_comes_first(name: str) -> None:
    with one_thread():
        said = named(read_pair(FOLDER / name))
    assert said.first, said
    assert said.counted, said


@pytest.mark.bench
@pytest.mark.filterwarnings("ignore:.*script_method. is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    "pair", [pair for pair in pairs() if pair.name not in NOT_OF_A_STEP], ids=lambda pair: pair.name
)
def test_the_changed_line_comes_first_in_every_pair(pair: Pair) -> None:
    with one_thread():
        said = named(pair)
    print(said)  # noqa: T201 - what the benchmark is for
    assert said.first, said
