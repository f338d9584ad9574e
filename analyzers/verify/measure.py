"""Functions timed in turns, warm: what disturbs one disturbs the other as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

Run = Callable[[], Any]

LEAST_ROUNDS = 5
"""Fewer give no spread that says anything: 5 hold the median between them at 94 %."""

SAMPLE_S = 0.005
"""A sample lasts about this long, so that the clock's grain and one interrupt do not count."""

MOST_CALLS = 200
MOST_WRITING_CALLS = 20
"""Ops in place repeat only so often between two resets: their values must not vanish."""

WARM_CALLS = 2

LONG_S = 1.0
"""What takes longer in one call is warm after it, and is measured `FEWEST_ROUNDS` times at least:
its time is not a matter of start-up."""

FEWEST_ROUNDS = 3


@dataclass(frozen=True)
class Timed:
    """Seconds of one call, by variant; place n of each was measured in round n."""

    seconds: Mapping[str, list[float]]
    calls: int
    """Calls of which each sample is the mean."""

    @property
    def rounds(self) -> int:
        return min(len(each) for each in self.seconds.values())


def timed(
    variants: Mapping[str, Run],
    device: torch.device,
    *,
    rounds: int,
    until: float,
    reset: Run | None = None,
) -> Timed:
    """Time the variants in turns: A B, B A, A B, ...

    Args:
        variants: What to call, by name.
        device: What to wait for after each sample.
        rounds: Samples of each variant.
        until: `time.monotonic()` from which on no round begins, `LEAST_ROUNDS` aside (for long
            calls `FEWEST_ROUNDS`).
        reset: Called before each sample, outside its time.
    """
    with torch.no_grad():
        slowest = _warmed(variants, device, reset)
        calls = _calls(slowest, writes=reset is not None)
        least = FEWEST_ROUNDS if slowest > LONG_S else LEAST_ROUNDS
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        order = list(variants)
        for number in range(rounds):
            if number >= least and time.monotonic() > until:
                break
            for name in order if number % 2 == 0 else reversed(order):
                if reset is not None:
                    reset()
                seconds[name].append(_sample(variants[name], device, calls))
    return Timed(seconds, calls)


def _warmed(variants: Mapping[str, Run], device: torch.device, reset: Run | None) -> float:
    """Warm up; seconds of one call of the slowest."""
    slowest = 0.0
    for run in variants.values():
        taken = 0.0
        for _ in range(WARM_CALLS):
            if reset is not None:
                reset()
            taken = _sample(run, device, 1)
            if taken > LONG_S:
                break
        slowest = max(slowest, taken)
    return slowest


def _calls(slowest: float, *, writes: bool) -> int:
    """How many calls of the slowest fill a sample."""
    most = MOST_WRITING_CALLS if writes else MOST_CALLS
    return max(1, min(most, round(SAMPLE_S / max(slowest, 1e-9))))


def _sample(run: Run, device: torch.device, calls: int) -> float:
    wait(device)
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    wait(device)
    return (time.perf_counter() - begin) / calls


def wait(device: torch.device) -> None:
    """Until the device has done what was asked of it; a CPU has."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
