"""What became of the step, and whose doing it is: the program's, the machine's, or nobody's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neuron_explorer.analyzers.compare.noise import (
    MATERIAL,
    Amount,
    Machine,
    Steps,
    Verdict,
    amount,
    band_ns,
)
from neuron_explorer.analyzers.compare.parts import DEVICE, HOST, Parts
from neuron_explorer.analyzers.compare.rows import Row
from neuron_explorer.analyzers.compare.sampling import Sample

_DEVICE_PACED = 0.5
"""Share of the step from which on a busy device, and not the host, sets its pace."""


@dataclass(frozen=True)
class StepChange:
    """Median step of both traces, and where the difference comes from (all in ns)."""

    base_ns: float
    new_ns: float
    typical_ns: float
    """The base's step without interruptions: its parts, each at its median."""
    program_ns: float | None
    """By lines that changed, at the machine's speed in the base; None = unknown."""
    machine_ns: float
    """By the speed of the machine at the same work."""
    band_ns: float | None
    """How far apart chance may put two steps of the same program; None = unknown."""
    verdict: Verdict

    @property
    def rest_ns(self) -> float | None:
        """Neither: interruptions, and what is too small to tell from noise."""
        if self.program_ns is None:
            return None
        return self.new_ns - self.base_ns - self.program_ns - self.machine_ns

    @property
    def program_share(self) -> float | None:
        """`program_ns` over the base's typical step."""
        if self.program_ns is None or not self.typical_ns:
            return None
        return self.program_ns / self.typical_ns


def step_change(
    base: Sample, new: Sample, parts: Parts, rows: Sequence[Row], steps: Steps
) -> StepChange:
    """Judge the step.

    On a CPU its lines add up to the step, so the lines that changed say what the program did. A
    device works beside the host: there the step is judged as a whole, by its own spread.
    """
    before, after = amount(base.column("duration_ns")), amount(new.column("duration_ns"))
    paced = DEVICE if base.accelerated and (base.busy_share or 0.0) >= _DEVICE_PACED else HOST
    seen = Machine() if base.modelled else parts.machines[paced]
    adjusted = after.at(seen.ratio)
    typical_ns = base.typical_ns
    band = band_ns(before, adjusted, steps, seen.scatter, explained=True)
    if base.accelerated or new.accelerated:
        explained = any(row.changed for row in rows)
        spread = seen.control.spread
        sigma = seen.scatter if explained else spread
        judged = band_ns(before, adjusted, steps, sigma, explained=explained)
        program = _whole(before, adjusted, judged)
        machine = after.ns - adjusted.ns
    else:
        program = _by_lines(rows) if steps.enough else None
        machine = new.host.total_ns * (1.0 - 1.0 / seen.ratio)
    return StepChange(
        base_ns=before.ns,
        new_ns=after.ns,
        typical_ns=typical_ns,
        program_ns=program,
        machine_ns=machine,
        band_ns=band,
        verdict=_verdict(program, MATERIAL * typical_ns),
    )


def _whole(base: Amount, adjusted: Amount, band: float | None) -> float | None:
    if band is None:
        return None
    delta = adjusted.ns - base.ns
    return delta if abs(delta) > band else 0.0


def _by_lines(rows: Iterable[Row]) -> float:
    """Lines and the rest without one add up to a step."""
    return sum(row.delta_ns for row in rows if row.kind in {"line", "rest"} and row.changed)


def _verdict(program_ns: float | None, least_ns: float) -> Verdict:
    if program_ns is None:
        return Verdict.UNKNOWN
    if abs(program_ns) < least_ns:
        return Verdict.SAME
    return Verdict.WORSE if program_ns > 0 else Verdict.BETTER
