from __future__ import annotations

import math

import numpy as np
import pytest

from neuron_explorer.analyzers.compare.noise import (
    FRESH_PAGES,
    Amount,
    Control,
    Steps,
    amount,
    band_ns,
    machine,
)


def test_the_machine_is_the_median_ratio_of_the_same_work() -> None:
    seen = machine([(100, 120), (50, 60), (10, 12), (400, 480), (30, 36), (70, 84)])
    assert seen.ratio == pytest.approx(1.2)
    assert seen.scatter == pytest.approx(0)


def test_one_part_that_changed_does_not_move_it() -> None:
    seen = machine([(100, 101), (50, 49), (10, 10), (400, 396), (30, 30), (70, 700)])
    assert seen.ratio == pytest.approx(1, abs=0.02)


def test_a_ratio_that_scatter_explains_is_no_ratio() -> None:
    seen = machine([(100, 130), (100, 80), (100, 120), (100, 70), (100, 112), (100, 95)])
    assert seen.ratio == 1.0
    assert seen.scatter is not None
    assert seen.scatter > 0.1


def test_few_parts_say_nothing() -> None:
    assert not machine([(100, 200)] * 4).known


def test_deviations_can_be_taken_back() -> None:
    seen = machine([(100, 110), (50, 50), (10, 11), (40, 40), (30, 33), (70, 70)])
    part = seen.deviation(100, 110)
    rest = seen.control.without(part)
    assert rest.parts == 5
    assert (rest + part).squares == pytest.approx(seen.control.squares)
    assert Control(3, 1.0, 1.0).spread is None


def test_an_outlier_is_no_part_of_the_amount() -> None:
    calm = amount(np.array([10.0, 11, 9, 10, 12, 8, 10]))
    warm = amount(np.array([900.0, 11, 9, 10, 12, 8, 10]))
    assert calm.ns == warm.ns == 10
    assert warm.variance == pytest.approx(calm.variance, rel=0.01)


def test_one_step_has_no_band() -> None:
    some = Amount(100, 4, 1)
    assert band_ns(some, some, Steps(1, 20), 0.1, explained=True) is None
    assert band_ns(some, some, Steps(20, 20), 0.1, explained=True) is not None


def test_few_steps_widen_the_band() -> None:
    some = Amount(100, 4, 1)
    bands = [
        band_ns(some, some, Steps(count, count), None, explained=True) for count in (2, 3, 5, 100)
    ]
    known = [band for band in bands if band is not None]
    assert known == sorted(known, reverse=True)
    assert known[-1] == pytest.approx(3 * math.sqrt(8))
    assert known[0] > 9 * known[-1]


def test_what_nothing_explains_must_be_twice_as_large() -> None:
    some = Amount(100, 4, 1)
    explained, unexplained = (
        band_ns(some, some, Steps(99, 99), None, explained=flag) for flag in (True, False)
    )
    assert unexplained == pytest.approx(2 * (explained or 0))


def test_bytes_written_widen_the_band_of_what_nothing_explains_alone() -> None:
    some = Amount(100, 4, 1)
    writing = Amount(100, 4, 1, written=1000)
    for flag, more in ((True, 0), (False, 1000 * FRESH_PAGES)):
        known, wider_ = (
            band_ns(each, some, Steps(99, 99), None, explained=flag) for each in (some, writing)
        )
        assert wider_ == pytest.approx((known or 0) + more)


def test_equal_samples_stay_inside_the_band() -> None:
    """By chance alone 3 standard errors are left once in 370; here it must not be more often."""
    generator = np.random.default_rng(7)
    outside = 0
    for _ in range(2000):
        left, right = (amount(generator.normal(100, 5, 30)) for _ in range(2))
        band = band_ns(left, right, Steps(30, 30), None, explained=True)
        outside += band is not None and abs(left.ns - right.ns) > band
    assert outside <= 2000 / 370 * 3
