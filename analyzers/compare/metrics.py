"""Figures of the whole trace that a comparison states and a gate may be put on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neuron_explorer.analyzers.compare.noise import (
    UNEXPLAINED,
    Amount,
    Machine,
    Steps,
    Verdict,
    amount,
    band_ns,
)
from neuron_explorer.analyzers.compare.sampling import Floats, Sample

NS, BYTES, SHARE, COUNT = "ns", "bytes", "share", "count"

_MATERIAL = {NS: 0.01, BYTES: 0.02, SHARE: 0.0, COUNT: 0.0}
"""Least relative difference that counts, by unit."""
_POINTS = 0.01
"""Least difference of a share that counts."""

_PEAKS = """
SELECT max(live_bytes) AS value
FROM allocations
WHERE device <> 'cpu' OR NOT EXISTS (SELECT 1 FROM allocations AS a WHERE a.device <> 'cpu')
GROUP BY rank, step
HAVING max(live_bytes) IS NOT NULL
ORDER BY rank, step
"""
_SYNCS = """
SELECT count(y.event_id) AS value
FROM steps AS s
LEFT JOIN syncs AS y ON s.rank = y.rank AND s.step = y.step
GROUP BY s.rank, s.step
ORDER BY s.rank, s.step
"""
_COMPILED = """
SELECT
    coalesce(sum(duration_ns) FILTER (WHERE kind = 'compile'), 0)::DOUBLE AS compile_time,
    count(*) FILTER (WHERE kind = 'compile')::DOUBLE AS compilations,
    count(*) FILTER (WHERE kind = 'recompile')::DOUBLE AS recompilations,
    count(*) FILTER (WHERE kind = 'graph_break')::DOUBLE AS graph_breaks
FROM compilations
WHERE in_window
"""


@dataclass(frozen=True)
class Metric:
    """One figure in both traces; more of it is always worse."""

    name: str
    unit: str
    """ns, bytes, share (0 to 1) or count."""
    doc: str
    base: float | None
    """None = not recorded."""
    new: float | None
    band: float | None
    """Difference that chance may make, in the unit; None = unknown."""
    verdict: Verdict
    missing: str = ""
    """Why a side has none, and what gives it."""
    program: bool = True
    """Whether it is the program's doing, and so a change of it counts."""

    @property
    def delta(self) -> float | None:
        return None if self.base is None or self.new is None else self.new - self.base

    @property
    def relative(self) -> float | None:
        """`delta` over the base; None where that is 0 or unknown."""
        return None if self.delta is None or not self.base else self.delta / self.base


@dataclass(frozen=True)
class _Kind:
    name: str
    unit: str
    doc: str
    values: Callable[[Sample], Floats]
    """One number a step."""
    missing: str
    whole: bool = False
    """Whether the largest is meant, not the median."""


def metrics(base: Sample, new: Sample, steps: Steps) -> list[Metric]:
    """All but those of the step and the findings, which a comparison judges itself."""
    stated = [_metric(kind, base, new, steps) for kind in _KINDS]
    return stated + _compiled(base, new)


def verdict(delta: float, band: float | None, least: float) -> Verdict:
    """What a difference means where less than `least` does not count."""
    if abs(delta) <= least:
        return Verdict.SAME
    if band is None:
        return Verdict.UNKNOWN
    if abs(delta) <= band:
        return Verdict.SAME
    return Verdict.WORSE if delta > 0 else Verdict.BETTER


def machine_metric(seen: Machine) -> Metric:
    """What the machine did to everything: no doing of the program, but worth a gate of its own."""
    doc = "how long the same work took, over the base: the machine and its settings"
    if seen.scatter is None:
        missing = "too few parts of a step are the same work in both"
        return Metric(
            "same_work", COUNT, doc, None, None, None, Verdict.UNKNOWN, missing, program=False
        )
    band = 3 * seen.scatter / math.sqrt(seen.control.parts)
    said = verdict(seen.ratio - 1.0, band, 0.01)
    return Metric("same_work", COUNT, doc, 1.0, seen.ratio, band, said, program=False)


def _metric(kind: _Kind, base: Sample, new: Sample, steps: Steps) -> Metric:
    before, after = (_stated(kind, kind.values(side)) for side in (base, new))
    if before is None or after is None:
        ours, theirs = (None if side is None else side.ns for side in (before, after))
        said = Verdict.UNKNOWN
        return Metric(kind.name, kind.unit, kind.doc, ours, theirs, None, said, kind.missing)
    # a time is as long as the machine likes, a count or a size is not
    band = band_ns(before, after, steps, None, explained=kind.unit != NS)
    least = _POINTS if kind.unit == SHARE else _MATERIAL[kind.unit] * UNEXPLAINED * before.ns
    said = verdict(after.ns - before.ns, band, least)
    return Metric(kind.name, kind.unit, kind.doc, before.ns, after.ns, band, said)


def _stated(kind: _Kind, values: Floats) -> Amount | None:
    if not len(values):
        return None
    found = amount(values)
    return Amount(float(values.max()), found.variance, positions=1) if kind.whole else found


def _compiled(base: Sample, new: Sample) -> list[Metric]:
    ours, theirs = (side.trace.sql(_COMPILED).to_pylist()[0] for side in (base, new))
    docs: Sequence[tuple[str, str, str]] = (
        ("compile_time", NS, "torch.compile's time in the window"),
        ("compilations", COUNT, "compilations in the window"),
        ("recompilations", COUNT, "recompilations in the window"),
        ("graph_breaks", COUNT, "graph breaks in the window"),
    )
    found = []
    for name, unit, doc in docs:
        before, after = ours[name], theirs[name]
        # how long a compilation takes is no matter of steps, so a time has no band
        band = None if unit == NS else 0.0
        said = verdict(after - before, band, _MATERIAL[unit] * before)
        found.append(Metric(name, unit, doc, before, after, band, said))
    return found


def _asked(query: str) -> Callable[[Sample], Floats]:
    def values(side: Sample) -> Floats:
        rows = side.trace.sql(query).column("value").to_pylist()
        return np.array(rows, dtype=np.float64)

    return values


def _on_device(name: str) -> Callable[[Sample], Floats]:
    return lambda side: side.column(name) if side.accelerated else np.empty(0)


def _idle(side: Sample) -> Floats:
    busy, span = side.column("device_busy_ns"), side.column("duration_ns")
    if not side.accelerated or len(busy) != len(span) or not span.all():
        return np.empty(0)
    return 1.0 - np.minimum(busy / span, 1.0)


_NO_DEVICE = "no device but the CPU was recorded"
_KINDS = (
    _Kind("device_time", NS, "work of the devices in a step", _on_device("work_ns"), _NO_DEVICE),
    _Kind("idle_share", SHARE, "part of the step without any device at work", _idle, _NO_DEVICE),
    _Kind("launches", COUNT, "launches in a step", _on_device("launches"), _NO_DEVICE),
    _Kind(
        "kernels", COUNT, "units of device work in a step", _on_device("work_events"), _NO_DEVICE
    ),
    _Kind(
        "syncs",
        COUNT,
        "calls in a step in which the host waits for a device, or would with one",
        _asked(_SYNCS),
        "no steps are marked: call profiler.step()",
    ),
    _Kind(
        "peak_memory",
        BYTES,
        "most memory in use on a device, or on the CPU where there is no other",
        _asked(_PEAKS),
        "no allocations were recorded: profile with profile_memory=True",
        whole=True,
    ),
)
