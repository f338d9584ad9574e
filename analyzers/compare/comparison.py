"""Two traces of one program, step against step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from neuron_explorer.analyzers.compare.found import FindingChange, finding_changes
from neuron_explorer.analyzers.compare.metrics import COUNT, NS, Metric, machine_metric, metrics
from neuron_explorer.analyzers.compare.noise import LEAST_STEPS, Machine, Steps, Verdict
from neuron_explorer.analyzers.compare.parts import DEVICE, HOST, parts_of
from neuron_explorer.analyzers.compare.rows import Row, Setting, rows_of
from neuron_explorer.analyzers.compare.sampling import Sample, sample
from neuron_explorer.analyzers.compare.step_change import StepChange, step_change
from neuron_explorer.analyzers.runner import Report, run
from neuron_explorer.findings import SEVERITIES
from neuron_explorer.trace import Trace

_JUDGED = {Verdict.BETTER, Verdict.WORSE}


@dataclass(frozen=True)
class Side:
    """One of the two traces."""

    steps: int
    """Over all ranks; 0 where none is marked."""
    ranks: int
    devices: tuple[str, ...]
    """Each with its chip, where that is known."""
    trusted: bool
    """Whether its health allows to draw conclusions."""
    complaints: tuple[str, ...]
    """What its health says against it."""


@dataclass(frozen=True)
class Comparison:
    """Everything `diff` shows, for whichever front end shows it."""

    base: Side
    new: Side
    step: StepChange
    machines: Mapping[str, Machine]
    """What the machine did to the same work: on the host, on a device."""
    rows: Sequence[Row]
    """Every line, module, op and queue: changes first, and of these edited code."""
    findings: Sequence[FindingChange]
    metrics: Sequence[Metric]
    notes: Sequence[str]
    """What the two differ in besides, and what is not known; each a sentence."""

    @property
    def trusted(self) -> bool:
        return self.base.trusted and self.new.trusted

    @property
    def unsteady(self) -> str:
        """Why what nobody has edited could not be judged, though there are steps; else empty."""
        for seen in self.machines.values():
            if not seen.steady:
                return (
                    f"the same work differs from itself by {seen.control.spread or 0:.0%} between"
                    " the captures: the machine was too busy"
                )
        return ""

    @property
    def changes(self) -> int:
        """Rows, findings and metrics that changed by more than chance."""
        return (
            sum(row.changed for row in self.rows)
            + sum(each.counted for each in self.findings)
            + sum(each.program and each.verdict in _JUDGED for each in self.metrics)
        )

    @property
    def changed(self) -> bool:
        return self.changes > 0

    def of_kind(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row.kind == kind]


def compare(
    base: Trace,
    new: Trace,
    reports: tuple[Report, Report] | None = None,
) -> Comparison:
    """Compare two traces of one program.

    Args:
        base: As it was.
        new: As it is.
        reports: What the analyzers say of both, where somebody has asked them already.

    Raises:
        AnalyzerError: An analyzer does not run.
        TraceError: A file of a trace is damaged.
    """
    before, after = sample(base), sample(new)
    ours, theirs = reports or (run(base), run(new))
    steps = Steps(before.count, after.count)
    parts = parts_of(before, after)
    rows = rows_of(parts, Setting(steps, parts.machines, before.typical_ns))
    step = step_change(before, after, parts, rows, steps)
    findings = finding_changes(ours.findings, theirs.findings, parts.pairs, rows)
    sides = _side(before, ours), _side(after, theirs)
    seen = Comparison(
        base=sides[0],
        new=sides[1],
        step=step,
        machines=parts.machines,
        rows=rows,
        findings=findings,
        metrics=[
            machine_metric(parts.machines[DEVICE if before.accelerated else HOST]),
            *metrics(before, after, steps),
            *_finding_metrics(findings),
        ],
        notes=list(_notes(before, after, sides)),
    )
    busy = [f"{seen.unsteady} to judge what nobody has edited"] if seen.unsteady else []
    stated = [_step_metric(step, seen.unsteady), *seen.metrics]
    return replace(seen, metrics=stated, notes=[*busy, *seen.notes])


_HEALTH = "SELECT DISTINCT status, message FROM health WHERE status = 'bad' ORDER BY message"
_DEVICES = "SELECT DISTINCT device, chip FROM devices ORDER BY device, chip"
_RANKS = "SELECT count(DISTINCT rank) AS ranks FROM rank_spans"


def _side(side: Sample, report: Report) -> Side:
    bad = [row["message"] for row in side.trace.sql(_HEALTH).to_pylist()]
    devices = [
        row["device"] if row["chip"] in {None, "cpu"} else f"{row['device']} {row['chip']}"
        for row in side.trace.sql(_DEVICES).to_pylist()
    ]
    (counted,) = side.trace.sql(_RANKS).to_pylist()
    return Side(
        steps=side.count,
        ranks=counted["ranks"],
        devices=tuple(devices),
        trusted=report.trusted and not bad,
        complaints=tuple(bad),
    )


def _step_metric(step: StepChange, unsteady: str) -> Metric:
    """The step as the program changed it, at the speed that the machine had in the base."""
    hidden = bool(unsteady) and step.verdict is Verdict.SAME
    program = None if hidden else step.program_ns
    few = f"that takes {LEAST_STEPS} marked steps a trace"
    return Metric(
        name="step_time",
        unit=NS,
        doc="a typical step, without interruptions and what the machine did to the same work",
        base=step.typical_ns,
        new=None if program is None else step.typical_ns + program,
        band=step.band_ns,
        verdict=Verdict.UNKNOWN if hidden else step.verdict,
        missing="" if program is not None else unsteady or few,
    )


def _finding_metrics(findings: Iterable[FindingChange]) -> Iterator[Metric]:
    """How many findings are new; a finding that stepped over a threshold is none."""
    counted = [each for each in findings if each.counted]
    fresh = [each.latest for each in counted if each.verdict is Verdict.NEW]
    raised = [each.latest for each in counted if each.verdict is Verdict.WORSE]
    for severity in (*SEVERITIES, None):
        of_it = fresh if severity is None else [*fresh, *raised]
        count = float(sum(severity in {None, finding.severity} for finding in of_it))
        name = "new_findings" if severity is None else f"new_{severity}"
        doc = "findings that the base does not have"
        yield Metric(
            name,
            COUNT,
            doc if severity is None else f"{doc}, or has as less severe, of severity {severity}",
            0.0,
            count,
            0.0,
            # the findings themselves are the changes, and counted as such
            Verdict.NEW if count else Verdict.SAME,
        )


def _notes(base: Sample, new: Sample, sides: tuple[Side, Side]) -> Iterator[str]:
    for name, side in zip(("base", "new"), sides, strict=True):
        if not side.steps:
            yield (
                f"{name} marks no steps, so all of it is compared as one, and what is noise is"
                " unknown: call profiler.step()"
            )
        elif side.steps < LEAST_STEPS:
            yield (
                f"{name} has one step only, so what is noise is unknown: record"
                f" {LEAST_STEPS} steps or more"
            )
    if sides[0].devices != sides[1].devices:
        yield f"other devices: {_named(sides[0])} before, {_named(sides[1])} now"
    if sides[0].ranks != sides[1].ranks:
        yield (
            f"{sides[0].ranks} ranks before, {sides[1].ranks} now: figures are of a step of a rank"
        )
    for option in _options_that_differ(base.trace, new.trace):
        yield f"recorded with another {option}, which costs time of its own"
    if base.modelled or new.modelled:
        yield "times are modelled, of the dry run's chip: host times are left out"


def _named(side: Side) -> str:
    return ", ".join(side.devices) or "none"


def _options_that_differ(base: Trace, new: Trace) -> list[str]:
    ours, theirs = _options(base), _options(new)
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def _options(trace: Trace) -> dict[str, bool]:
    told = [metadata.get("capture") or {} for metadata in trace.metadata.values()]
    return {
        name: value
        for options in told
        for name, value in options.items()
        if isinstance(value, bool)
    }
