"""The line of backward work on threads that run no model code."""

from __future__ import annotations

import numpy as np

from neuron_explorer.collectors.backward_lines import waiting_calls
from neuron_explorer.collectors.line_timeline import LineChanges


def changes(*times_and_places: tuple[int, int]) -> LineChanges:
    times, places = zip(*times_and_places, strict=True)
    return LineChanges(np.array(times), np.array(places, np.int32), np.array(times) - 1)


def test_the_one_thread_in_model_code_is_the_one_that_waits() -> None:
    threads = {1: changes((10, 4), (20, -1), (30, 5)), 2: changes((15, 7), (32, -1))}
    at = np.array([5, 12, 17, 25, 31, 40])
    place, entered = waiting_calls(threads, at)
    # before all lines; one thread; both; the other one; both again; one again
    assert place.tolist() == [-1, 4, -1, 7, -1, 5]
    assert entered[[1, 3, 5]].tolist() == [9, 14, 29]


def test_no_recorded_thread_gives_no_line() -> None:
    place, _ = waiting_calls({}, np.array([1, 2]))
    assert place.tolist() == [-1, -1]
