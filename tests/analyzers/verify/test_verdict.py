"""What was measured beside what was claimed."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer.analyzers.verify.verdict import (
    CONFIRMED,
    NOT_CONFIRMED,
    SMALLER,
    Claim,
    Spread,
    Trial,
    beside,
    compare,
    judge,
    spread,
)

CLAIM = Claim(1_000, 200, 400)


@pytest.mark.parametrize(
    ("gain", "verdict", "place"),
    [
        (Spread(0.3, 0.25, 0.35), CONFIRMED, "within"),
        (Spread(0.5, 0.45, 0.55), CONFIRMED, "above"),
        (Spread(0.1, 0.05, 0.15), SMALLER, "below"),
        (Spread(0.3, -0.1, 0.5), NOT_CONFIRMED, "within"),
        (Spread(-0.2, -0.3, -0.1), NOT_CONFIRMED, "below"),
    ],
)
def test_verdicts(gain: Spread, verdict: str, place: str) -> None:
    assert (judge(gain, CLAIM), beside(gain, CLAIM)) == (verdict, place)


def test_a_claim_of_up_to_something_needs_a_gain_that_stands_out() -> None:
    claim = Claim(1_000, 0, 900)
    assert judge(Spread(0.02, 0.01, 0.03), claim) == CONFIRMED
    assert judge(Spread(0.02, -0.01, 0.05), claim) == NOT_CONFIRMED


def test_where_nothing_is_claimed_a_gain_is_still_a_gain() -> None:
    claim = Claim(1_000, None, None)
    assert judge(Spread(0.2, 0.1, 0.3), claim) == CONFIRMED
    assert beside(Spread(0.2, 0.1, 0.3), claim) is None


def test_work_weighs_by_its_occurrences() -> None:
    often = Trial("often", 9, 9, {"before": [1.0] * 5, "after": [0.5] * 5})
    once = Trial("once", 1, 1, {"before": [1.0] * 5, "after": [1.0] * 5})
    compared = compare([often, once])
    assert compared.before_s == Spread(10.0, 10.0, 10.0)
    assert compared.gain.median == pytest.approx(0.45)


def test_rounds_are_paired_so_that_a_slow_one_slows_both() -> None:
    slow = [1.0, 10.0, 1.0, 7.0, 1.0]
    trial = Trial("one", 1, 1, {"before": slow, "after": [s / 2 for s in slow]})
    assert compare([trial]).gain == Spread(0.5, 0.5, 0.5)


@pytest.mark.parametrize(("count", "left_out"), [(3, 0), (5, 0), (9, 1), (12, 2), (21, 5)])
def test_how_many_extremes_are_left_out(count: int, left_out: int) -> None:
    # sign test: P(Bin(21, 1/2) <= 5) = 0.0133, P(... <= 6) = 0.0392
    assert spread(range(count)) == Spread((count - 1) / 2, left_out, count - 1 - left_out)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_the_interval_holds_the_median(samples: list[float]) -> None:
    found = spread(samples)
    assert found.low <= found.median == statistics.median(samples) <= found.high
