"""Functions are timed in turns, warm, and within their time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.analyzers.verify import measure  # noqa: E402
from neuron_explorer.analyzers.verify.measure import timed  # noqa: E402

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
LATER = 3_600.0


def _sleeping(calls: list[str], name: str, seconds: float) -> Callable[[], None]:
    def run() -> None:
        calls.append(name)
        time.sleep(seconds)

    return run


def test_variants_take_turns_and_the_first_changes() -> None:
    calls: list[str] = []
    runs = {"before": _sleeping(calls, "b", 0.006), "after": _sleeping(calls, "a", 0.003)}
    taken = timed(runs, CPU, rounds=5, until=time.monotonic() + LATER)
    assert taken.calls == 1  # the slower one fills a sample
    assert "".join(calls) == "bbaabaabbaabba"
    assert min(taken.seconds["before"]) >= 0.006 > min(taken.seconds["after"]) >= 0.003


def test_short_calls_are_repeated_within_a_sample() -> None:
    taken = timed({"before": lambda: None}, CPU, rounds=5, until=time.monotonic() + LATER)
    assert taken.calls == measure.MOST_CALLS
    assert taken.seconds["before"][0] < measure.SAMPLE_S


def test_it_stops_in_time_but_not_before_it_can_tell() -> None:
    calls: list[str] = []
    runs = {"before": _sleeping(calls, "b", 0.006)}
    assert timed(runs, CPU, rounds=50, until=time.monotonic()).rounds == measure.LEAST_ROUNDS


def test_what_runs_in_place_is_undone_before_each_sample() -> None:
    calls: list[str] = []
    runs = {"before": _sleeping(calls, "b", 0.006)}
    timed(runs, CPU, rounds=5, until=time.monotonic() + LATER, reset=lambda: calls.append("r"))
    assert "".join(calls) == "rb" * 7


def test_few_calls_of_what_runs_in_place_so_that_values_do_not_vanish() -> None:
    runs = {"before": lambda: None}
    taken = timed(runs, CPU, rounds=5, until=time.monotonic() + LATER, reset=lambda: None)
    assert taken.calls == measure.MOST_WRITING_CALLS
