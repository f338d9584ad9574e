"""What is noise: how much the same work differs between two captures, and within each.

Two sources. *Steps*: the median of a few steps is known only so well. *Machine*: clocks, caches and
neighbours differ between two captures, which no spread of steps shows. It is measured with the
work that is the same in both (same line, op, shapes, dtypes, calls a step): the median of its
ratios is what the machine did to everything, and how they scatter around it is what it does to
parts of it. A change counts where it exceeds both. Where neither the code nor the work of a row
has changed, nothing explains another time: then every deviation of the same work elsewhere counts,
weighted by its time, and the change must be twice as large, beside what fresh pages cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from neuron_explorer.analyzers.compare.sampling import Floats

LEAST_STEPS = 2
"""With fewer there is no spread of steps, and no verdict on a time."""
LEAST_CONTROLS = 5
"""With fewer parts in common the machine's doing is unknown."""
MATERIAL = 0.01
"""Share of the step below which no difference counts."""
_SIGMAS = 3.0
"""Standard errors that are still chance."""
UNEXPLAINED = 2.0
"""How much larger a change must be that neither code nor work explains: hundreds of such rows are
judged at once (6 standard errors are left by one in 5e8 of normal ones, so the number of rows adds
nothing), and the same work has heavy tails. All 132 pairs among 24 equal captures on an
overbooked machine, 130 rows each, had one row beyond 5 standard errors and none beyond 6."""
UNSTEADY = 0.5
"""From this deviation of the same work on the machine was too busy: 36 pairs of equal captures with
two threads on two cores that others had taken had 4 with false changes, all beyond 0.59."""
FRESH_PAGES = 1.0
"""Time (ns) that a byte written into the host's memory may take more in one capture than in the
other: whether an allocator hands out pages that are there already, or fresh ones that the kernel
must fill with zeros first, depends on all that was allocated before. In 158 pairs among equal
captures of tests/changing_program.py a page of 4 KiB cost 2 to 3 us, so that an op that writes
256 KiB took 30 us or 170, the same in every step of a capture."""
STEP_ENDS = 500_000.0
"""Time (ns) that the end of a step may take more in one capture than in the other, behind its last
op, where no line is known and the recorder itself ends the step and begins the next: 140 to 369 us
in five equal captures of tests/changing_program.py."""
_MAD = 1.4826

# Student's t at 0.9995 over its limit 3.291: how much wider a band is for few degrees of freedom.
_WIDER = {1: 193.4, 2: 9.602, 3: 3.927, 4: 2.616, 5: 2.087, 6: 1.811, 8: 1.532, 10: 1.394}
_WIDER |= {15: 1.238, 20: 1.170, 30: 1.108, 60: 1.052}


class Verdict(StrEnum):
    """What became of a figure or a row."""

    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    NEW = "new"
    GONE = "gone"
    UNKNOWN = "unknown"
    """Recorded in one trace only, or without a noise band."""


@dataclass(frozen=True)
class Amount:
    """A typical time a step."""

    ns: float = 0.0
    variance: float = 0.0
    """Of `ns`, by the spread of the steps (ns squared)."""
    positions: int = 0
    """Parts of a step that it adds up."""
    events: float = 0.0
    """How many of them ran in a step, on average."""
    regular: bool = True
    """Whether all of them run in most steps."""
    written: float = 0.0
    """Bytes a step that they are known to write into the host's memory."""

    def at(self, ratio: float) -> Amount:
        """The same work at the speed of a machine that takes `1 / ratio` of the time."""
        return replace(self, ns=self.ns / ratio, variance=self.variance / ratio**2)

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.ns + other.ns,
            self.variance + other.variance,
            self.positions + other.positions,
            self.events + other.events,
            self.regular and other.regular,
            self.written + other.written,
        )


@dataclass(frozen=True)
class Steps:
    """How many steps stand behind each side."""

    base: int
    new: int

    @property
    def enough(self) -> bool:
        return min(self.base, self.new) >= LEAST_STEPS

    @property
    def degrees(self) -> int:
        """Of freedom, a position."""
        return max(self.base + self.new - 2, 1)


@dataclass(frozen=True)
class Control:
    """Deviations of the same work, to which more can be added and from which some be taken."""

    parts: int = 0
    weight: float = 0.0
    """Sum of their times (ns)."""
    squares: float = 0.0
    """Sum of time times the square of its logarithmic deviation."""

    def __add__(self, other: Control) -> Control:
        return Control(
            self.parts + other.parts, self.weight + other.weight, self.squares + other.squares
        )

    def without(self, other: Control) -> Control:
        return Control(
            self.parts - other.parts, self.weight - other.weight, self.squares - other.squares
        )

    @property
    def spread(self) -> float | None:
        """Typical deviation, weighted by time; None where it rests on too little."""
        if self.parts < LEAST_CONTROLS or self.weight <= 0:
            return None
        return math.sqrt(max(self.squares, 0.0) / self.weight)


@dataclass(frozen=True)
class Machine:
    """What the machine did to the same work in the new capture, against the base."""

    ratio: float = 1.0
    """How long it took, over what it took before; 1 where that is not known any better."""
    scatter: float | None = None
    """Standard deviation of the logarithmic ratios, by their median deviation; None = unknown."""
    control: Control = field(default_factory=Control)

    @property
    def steady(self) -> bool:
        """Whether the same work resembles itself enough to judge what nothing explains."""
        spread = self.control.spread
        return spread is None or spread <= UNSTEADY

    @property
    def known(self) -> bool:
        return self.control.spread is not None

    def deviation(self, base_ns: float, new_ns: float) -> Control:
        """What one part that is the same work has to say."""
        away = math.log(new_ns / base_ns / self.ratio)
        weight = base_ns + new_ns
        return Control(1, weight, weight * away**2)


def machine(pairs: Sequence[tuple[float, float]]) -> Machine:
    """What the times of the same parts in both captures (base, new; above 0 ns) say of it."""
    if len(pairs) < LEAST_CONTROLS:
        return Machine(control=Control(parts=len(pairs)))
    ratios = np.log([new / base for base, new in pairs])
    middle = float(np.median(ratios))
    known_to = _SIGMAS * 1.2533 * _deviation(ratios - middle) / math.sqrt(len(ratios))
    if abs(middle) <= known_to:
        middle = 0.0
    bare = Machine(math.exp(middle), _deviation(ratios - middle))
    return replace(bare, control=sum((bare.deviation(*pair) for pair in pairs), Control()))


def _deviation(values: Floats) -> float:
    return _MAD * float(np.median(np.abs(values)))


def band_ns(
    base: Amount, new: Amount, steps: Steps, sigma: float | None, *, explained: bool
) -> float | None:
    """How far `new.ns` may be from `base.ns` by chance (ns); None = unknown.

    Args:
        base: In the base.
        new: In the new trace, at the speed that the machine had in the base.
        steps: How many there are.
        sigma: Logarithmic deviation that the machine makes; None = unknown.
        explained: Whether code or work has changed.
    """
    if not steps.enough:
        return None
    sigmas = _SIGMAS if explained else UNEXPLAINED * _SIGMAS
    degrees = max(base.positions, new.positions, 1) * steps.degrees
    by_steps = sigmas * wider(degrees) * math.sqrt(base.variance + new.variance)
    by_machine = math.expm1(sigmas * (sigma or 0.0)) * min(base.ns, new.ns)
    by_pages = 0.0 if explained else FRESH_PAGES * max(base.written, new.written)
    return math.hypot(by_steps, by_machine) + by_pages


def amount(values: Floats) -> Amount:
    """The median of one number a step, and how well it is known."""
    if not len(values):
        return Amount()
    middle = float(np.median(values))
    spread = _deviation(values - middle)
    return Amount(middle, (1.2533 * spread) ** 2 / len(values), positions=1)


def wider(degrees: int) -> float:
    """How much wider a band is that rests on so few degrees of freedom."""
    known = [freedom for freedom in _WIDER if freedom <= degrees]
    return _WIDER[max(known)] if degrees < 120 else 1.0
