"""The claim of a finding beside what was measured: confirmed, smaller, or not."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CONFIRMED = "confirmed"
SMALLER = "smaller than claimed"
NOT_CONFIRMED = "not confirmed"
CANNOT = "cannot be replayed"

VERDICTS: dict[str, str] = {
    CONFIRMED: "The measured gain lies in the claimed interval or above it.",
    SMALLER: "There is a gain, but less than the claim's lower end.",
    NOT_CONFIRMED: "No gain that stands out from the spread of the measurement.",
    CANNOT: "Nothing was measured; the reason says why.",
}

LEAST_CONFIDENCE = 0.93
"""Five samples hold the median between them at 94 %: no bound on it asks for fewer."""


@dataclass(frozen=True)
class Trial:
    """One kind of work of a finding, measured before and after the change."""

    label: str
    occurrences: int
    recorded_ns: int
    """Recorded time of all occurrences."""
    seconds: Mapping[str, Sequence[float]]
    """Seconds of one occurrence by variant, `before` and `after` among them."""
    calls: int = 1
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """What a finding expects of the part of the trace that it talks about."""

    of_ns: int
    """Recorded time that the saving is a part of."""
    low_ns: int | None
    high_ns: int | None

    def part(self, saving_ns: int | None) -> float | None:
        return None if saving_ns is None or not self.of_ns else saving_ns / self.of_ns


@dataclass(frozen=True)
class Spread:
    """A median, and the interval that holds it at `LEAST_CONFIDENCE` or more."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Compared:
    """The measurement of a finding, all its trials together."""

    before_s: Spread
    after_s: Spread
    gain: Spread
    """Part of the time before that is gone after, 0 to 1; negative where it takes longer."""
    others: Mapping[str, Spread] = field(default_factory=dict)
    """The same part for further variants, by name."""


def compare(trials: Sequence[Trial]) -> Compared:
    """Weigh the trials by their occurrences, round by round: what slows a round slows both."""
    names = list(trials[0].seconds)
    rounds = min(len(each) for trial in trials for each in trial.seconds.values())
    total = {
        name: [
            sum(trial.occurrences * trial.seconds[name][number] for trial in trials)
            for number in range(rounds)
        ]
        for name in names
    }
    gains = {
        name: spread([1 - s / b for s, b in zip(total[name], total["before"], strict=True)])
        for name in names
    }
    return Compared(
        spread(total["before"]),
        spread(total["after"]),
        gains["after"],
        {name: gains[name] for name in names if name not in {"before", "after"}},
    )


def spread(samples: Sequence[float]) -> Spread:
    """The median and the interval around it that order alone gives (no normal law assumed)."""
    ordered = sorted(samples)
    rank = _inner_rank(len(ordered))
    return Spread(statistics.median(ordered), ordered[rank], ordered[-1 - rank])


def _inner_rank(count: int) -> int:
    """How many samples at either end to leave out (sign test): as many as the confidence lets."""
    rank, outside = 0, 0.5**count
    while True:
        outside += math.comb(count, rank + 1) * 0.5**count
        if 1 - 2 * outside < LEAST_CONFIDENCE:
            return rank
        rank += 1


def judge(gain: Spread, claim: Claim) -> str:
    """The verdict in words (`VERDICTS`)."""
    if gain.low <= 0:
        return NOT_CONFIRMED
    low = claim.part(claim.low_ns) or 0.0
    return SMALLER if gain.median < low else CONFIRMED


def beside(gain: Spread, claim: Claim) -> str | None:
    """`within`, `above` or `below` the claimed interval; None where nothing is claimed."""
    low, high = claim.part(claim.low_ns), claim.part(claim.high_ns)
    if high is None:
        return None
    if gain.median > high:
        return "above"
    return "below" if gain.median < (low or 0.0) else "within"
