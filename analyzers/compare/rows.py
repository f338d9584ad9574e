"""Both traces side by side, by line, module, op with its shapes, or queue."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from neuron_explorer.analyzers.compare.lines import LinePair
from neuron_explorer.analyzers.compare.noise import (
    MATERIAL,
    STEP_ENDS,
    UNEXPLAINED,
    Amount,
    Control,
    Machine,
    Steps,
    Verdict,
    band_ns,
)
from neuron_explorer.analyzers.compare.parts import DEVICE, HOST, WAIT, Part, Parts, Place
from neuron_explorer.analyzers.compare.sampling import ENDING, PYTHON

KINDS = ("line", "module", "op", "queue", "rest")
REST = "no line"
"""Name of the row, of the kind rest, for what has no line; with the lines it makes up the step."""


@dataclass(frozen=True)
class Time:
    """One time of a row, a step: before, after, and how far apart chance may put them (ns)."""

    base_ns: float
    new_ns: float
    adjusted_ns: float
    """The new one at the speed that the machine had in the base."""
    band_ns: float | None
    """None = unknown."""
    base_events: float
    """Ops, calls or kernels a step."""
    new_events: float

    @property
    def delta_ns(self) -> float:
        """What the program itself does to it: the machine's part is taken out."""
        return self.adjusted_ns - self.base_ns

    def verdict(self, least_ns: float) -> Verdict:
        """Whether it changed, where less than `least_ns` does not count."""
        if bool(self.base_events) != bool(self.new_events):
            return Verdict.GONE if self.base_events else Verdict.NEW
        if abs(self.delta_ns) < least_ns:
            return Verdict.SAME
        if self.band_ns is None:
            return Verdict.UNKNOWN
        if abs(self.delta_ns) <= self.band_ns:
            return Verdict.SAME
        return Verdict.WORSE if self.delta_ns > 0 else Verdict.BETTER


@dataclass(frozen=True)
class Row:
    """One line, module, op or queue in both traces."""

    kind: str
    """One of `KINDS`."""
    name: str
    verdict: Verdict
    delta_ns: float
    """What the program does to the time of it that changed most, a step."""
    measure: str
    """Which time that is: host, device or wait."""
    times: Mapping[str, Time]
    """By where the time was spent: host, device or wait."""
    explained: bool
    """Whether its code or its work has changed."""
    material: bool
    """Whether `delta_ns` is large enough to count."""
    pair: LinePair | None = None
    """Of a line."""
    detail: str = ""
    """Shapes and dtypes of an op."""

    @property
    def changed(self) -> bool:
        """Whether it counts as a change of the program."""
        return self.material and self.verdict not in {Verdict.SAME, Verdict.UNKNOWN}


@dataclass(frozen=True)
class Setting:
    """What all rows of one comparison are judged by."""

    steps: Steps
    machines: Mapping[str, Machine]
    """By where the time was spent."""
    step_ns: float
    """Step of the base, for shares."""

    def least_ns(self, *, explained: bool) -> float:
        """A difference below it does not count."""
        return MATERIAL * self.step_ns * (1.0 if explained else UNEXPLAINED)


@dataclass
class _Sum:
    """What becomes one time of a row."""

    base: Amount = field(default_factory=Amount)
    new: Amount = field(default_factory=Amount)
    adjusted: Amount = field(default_factory=Amount)
    control: Control = field(default_factory=Control)
    same: bool = True
    """Whether all of its ops and calls are the same work."""
    above_ns: float = 0.0
    """Difference of Python that somebody has edited (ns)."""
    recorder_ns: float = 0.0
    """By how much it may differ because the recorder ends a step and begins the next (ns)."""

    @property
    def explained(self) -> bool:
        """Whether other work than before makes the difference."""
        change = abs(self.adjusted.ns - self.base.ns)
        return not self.same or (self.above_ns != 0 and abs(self.above_ns) >= change / 2)

    def add(self, part: Part) -> None:
        self.base += part.base
        self.new += part.new
        self.adjusted += part.adjusted
        self.control += part.control
        if part.place.name == ENDING:
            self.recorder_ns += min(abs(part.adjusted.ns - part.base.ns), STEP_ENDS)
        if part.place.name != PYTHON:
            self.same = self.same and part.same
        elif not part.same:
            self.above_ns += part.adjusted.ns - part.base.ns


Key = Callable[[Place], Hashable | None]

_KEYS: Mapping[str, Key] = {
    "line": lambda place: place.line,
    "module": lambda place: place.module,
    "op": lambda place: (place.name, place.shapes, place.dtypes),
    "queue": lambda place: None if place.queue is None else (place.device, place.queue),
    "rest": lambda place: REST if place.line is None else None,
}


def rows_of(parts: Parts, setting: Setting) -> list[Row]:
    """Rows of every kind: changes first, of these edited code first, then the largest."""
    rows = []
    for kind in KINDS:
        sums = _sums(parts.parts, _KEYS[kind])
        rows += [_row(kind, key, by_measure, parts, setting) for key, by_measure in sums.items()]
    return sorted(rows, key=_order)


def _sums(parts: Iterable[Part], key: Key) -> dict[Hashable, dict[str, _Sum]]:
    found: dict[Hashable, dict[str, _Sum]] = {}
    for part in parts:
        at = key(part.place)
        if at is not None:
            found.setdefault(at, {}).setdefault(part.place.measure, _Sum()).add(part)
    return found


def _row(kind: str, key: Hashable, sums: Mapping[str, _Sum], parts: Parts, setting: Setting) -> Row:
    pair = parts.pairs[key] if isinstance(key, int) else None
    explained = (pair is not None and pair.edited) or any(each.explained for each in sums.values())
    times = {
        measure: _time(sums[measure], measure, setting, explained=explained)
        for measure in (DEVICE, HOST, WAIT)
        if measure in sums
    }
    least_ns = setting.least_ns(explained=explained)
    verdict, measure = _verdict(times, least_ns)
    delta = 0.0 if verdict is Verdict.SAME and measure == WAIT else times[measure].delta_ns
    name, detail = _words(key, pair)
    return Row(
        kind=kind,
        name=name,
        verdict=verdict,
        delta_ns=delta,
        measure=measure,
        times=times,
        explained=explained,
        material=abs(delta) >= least_ns,
        pair=pair,
        detail=detail,
    )


def _words(key: Hashable, pair: LinePair | None) -> tuple[str, str]:
    if pair is not None:
        return f"{pair.latest.file}:{pair.latest.number}", ""
    if not isinstance(key, tuple):
        return str(key), ""
    name, *details = (str(each) for each in key if each is not None)
    return name, " ".join(details)


def _time(found: _Sum, measure: str, setting: Setting, *, explained: bool) -> Time:
    seen = setting.machines.get(measure, Machine())
    others = seen.control.without(found.control).spread
    # a queue or module that is nearly everything has no others
    spread = seen.scatter if others is None else others
    sigma = spread if not explained or spread is None else max(seen.scatter or 0.0, spread / 2)
    steps = setting.steps
    band = band_ns(found.base, found.adjusted, steps, sigma, explained=explained)
    if band is not None:
        band += found.recorder_ns
    return Time(
        base_ns=found.base.ns,
        new_ns=found.new.ns,
        adjusted_ns=found.adjusted.ns,
        band_ns=band if explained or seen.steady else None,
        base_events=found.base.events,
        new_events=found.new.events,
    )


def _verdict(times: Mapping[str, Time], least_ns: float) -> tuple[Verdict, str]:
    """The verdict of the time that changed most, and which it is.

    How long the host waits is the device's doing, unless it waits more often than before.
    """
    counted = {m: t for m, t in times.items() if m != WAIT or t.base_events != t.new_events}
    if not counted:
        return Verdict.SAME, WAIT
    judged = {measure: time.verdict(least_ns) for measure, time in counted.items()}
    changed = [measure for measure, verdict in judged.items() if verdict is not Verdict.SAME]
    measure = max(changed or judged, key=lambda each: abs(counted[each].delta_ns))
    verdict, delta = judged[measure], counted[measure].delta_ns
    if verdict in {Verdict.NEW, Verdict.GONE} and _was_and_is(times.values()):
        # it does something else than before, but it was there and still is
        verdict = Verdict.WORSE if delta > 0 else Verdict.BETTER
        verdict = verdict if abs(delta) >= least_ns else Verdict.SAME
    return verdict, measure


def _was_and_is(times: Iterable[Time]) -> bool:
    seen: Sequence[Time] = list(times)
    return any(t.base_events for t in seen) and any(t.new_events for t in seen)


def _order(row: Row) -> tuple[bool, bool, float, float, str, str]:
    """Causes before effects: what somebody has edited, then what changed with it."""
    takes = max(max(t.base_ns, t.new_ns) for t in row.times.values())
    edited = row.pair is not None and row.pair.edited
    return not row.changed, not edited, -abs(row.delta_ns), -takes, row.name, row.detail
