"""Findings of a trace, each replayed before and after its change and judged by what that took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import torch

from neuron_explorer.analyzers.verify import verdict as words
from neuron_explorer.analyzers.verify.machine import (
    MEMORY_PART,
    busy_machine,
    device_title,
    free_bytes,
    is_other,
    recorded_device,
    threads_of_torch,
)
from neuron_explorer.analyzers.verify.measure import timed
from neuron_explorer.analyzers.verify.plans import Case, Plan, RefutedError, Setup
from neuron_explorer.analyzers.verify.programs import bytes_needed
from neuron_explorer.analyzers.verify.recorded import CannotReplayError
from neuron_explorer.analyzers.verify.registry import planner
from neuron_explorer.analyzers.verify.verdict import Claim, Compared, Spread, Trial
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

ROUNDS = 21
SECONDS = 20.0

_COPIES_OF_INPUTS = 3
"""Inputs, what restores or narrows them, and results: each about as large as the inputs."""

_LEAST_MEASURING_S = 2.0
"""Once built (a compilation may have used the time up), so long is measured in any case."""

_NOT_REACHED = "the time for this finding was over (--seconds)"

Result = dict[str, object]


@dataclass(frozen=True)
class Options:
    """How to measure."""

    device: torch.device
    rounds: int = ROUNDS
    """Samples of each variant."""
    seconds: float = SECONDS
    """Time for one finding, building included; one kind of work is always measured to its end."""
    threads: int | None = None
    """Threads of torch on a CPU; None: as torch has it."""


@dataclass(frozen=True)
class _Left:
    """A kind of work that was not measured."""

    setup: Setup
    why: str


def verify(
    trace: Trace,
    findings: Sequence[Finding],
    options: Options,
    said: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Finding, Result]]:
    """Measure one finding after another; `said` hears what is under way."""
    for number, finding in enumerate(findings, 1):
        said(f"{number} of {len(findings)}: {finding.analyzer}")
        yield finding, verify_one(trace, finding, options)


def verify_one(trace: Trace, finding: Finding, options: Options) -> Result:
    """The result of one finding, as it is kept and shown."""
    with threads_of_torch(options.threads):
        return _verified(Case(trace, finding, options.device), options)


def _verified(case: Case, options: Options) -> Result:
    finding = case.finding
    facts = _facts(case, options)
    try:
        plan = planner(finding.analyzer)(case)
        trials, left = _measure(plan, options)
    except CannotReplayError as error:
        return {"verdict": words.CANNOT, "why": str(error), **facts}
    except RefutedError as error:
        return {"verdict": words.NOT_CONFIRMED, "why": str(error), **facts}
    claim = Claim(plan.claim_of_ns, *_saving_of_the_work(finding))
    return _result(plan, claim, trials, left) | facts


def _saving_of_the_work(finding: Finding) -> tuple[int | None, int | None]:
    """What of the work's own time should go: a replay shows it without host, step or recorder."""
    for of in ("device", "recorded"):
        low, high = (finding.evidence.get(f"{of}_saving_{end}_ns") for end in ("low", "high"))
        if isinstance(high, int):
            return (low if isinstance(low, int) else None), high
    return finding.saving_low_ns, finding.saving_high_ns


def _facts(case: Case, options: Options) -> Result:
    recorded = recorded_device(case.trace, case.rank, case.finding.event_ids)
    return {
        "device": device_title(options.device),
        "recorded_device": recorded,
        "other_device": is_other(case.trace, recorded, options.device),
        "torch": torch.__version__,
        "busy": busy_machine(),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _measure(plan: Plan, options: Options) -> tuple[list[Trial], list[_Left]]:
    """Measure the kinds of work, that with the most recorded time first.

    Raises:
        CannotReplayError: None of them can be.
        RefutedError: The change is impossible for the first.
    """
    until = time.monotonic() + options.seconds
    trials: list[Trial] = []
    left: list[_Left] = []
    waiting = sorted(plan.setups, key=lambda setup: -setup.recorded_ns)
    for number, setup in enumerate(waiting):
        if trials and time.monotonic() > until:
            left += [_Left(each, _NOT_REACHED) for each in waiting[number:]]
            break
        share = (until - time.monotonic()) / (len(waiting) - number)
        try:
            trials.append(_trial(setup, options, time.monotonic() + share))
        except (CannotReplayError, RuntimeError) as error:  # torch's own are RuntimeErrors
            left.append(_Left(setup, str(error).strip().partition("\n")[0]))
    if not trials:
        raise CannotReplayError(left[0].why if left else "it has no work to run")
    return trials, left


def _trial(setup: Setup, options: Options, until: float) -> Trial:
    _check_memory(setup, options.device)
    variants = setup.build()
    until = max(until, time.monotonic() + _LEAST_MEASURING_S)
    taken = timed(
        variants.runs, options.device, rounds=options.rounds, until=until, reset=variants.reset
    )
    return Trial(
        setup.label,
        setup.occurrences,
        setup.recorded_ns,
        taken.seconds,
        taken.calls,
        tuple(variants.notes),
    )


def _check_memory(setup: Setup, device: torch.device) -> None:
    needed = _COPIES_OF_INPUTS * bytes_needed(setup.ops, device)
    free = free_bytes(device)
    if free is not None and needed > MEMORY_PART * free:
        raise CannotReplayError(
            f"it needs about {needed / 1e9:.2f} GB, and of {free / 1e9:.2f} GB free on {device}"
            f" no more than {MEMORY_PART:.0%} may be taken"
        )


def _result(plan: Plan, claim: Claim, trials: Sequence[Trial], left: Sequence[_Left]) -> Result:
    compared = words.compare(trials)
    measured_ns = sum(trial.recorded_ns for trial in trials)
    covered = measured_ns / max(measured_ns + sum(each.setup.recorded_ns for each in left), 1)
    notes = [*plan.notes, *dict.fromkeys(note for trial in trials for note in trial.notes)]
    return {
        "verdict": words.judge(compared.gain, claim),
        "why": None,
        "before": plan.before,
        "after": plan.after,
        **_times(compared),
        "predicted_low": claim.part(claim.low_ns),
        "predicted_high": claim.part(claim.high_ns),
        "beside_prediction": words.beside(compared.gain, claim),
        # over the captured trace, as the finding's own saving is
        "measured_saving_ns": _scaled(compared.gain, claim.of_ns * covered),
        "claim_of_ns": claim.of_ns,
        "covered": round(covered, 4),
        "rounds": min(len(each) for trial in trials for each in trial.seconds.values()),
        "trials": [_trial_json(trial) for trial in trials],
        "left_out": [
            {"what": each.setup.label, "recorded_ns": each.setup.recorded_ns, "why": each.why}
            for each in left
        ],
        "notes": notes,
    }


def _times(compared: Compared) -> Result:
    return {
        "before_ns": _nanoseconds(compared.before_s),
        "after_ns": _nanoseconds(compared.after_s),
        "gain": _parts(compared.gain),
        "gain_of_others": {name: _parts(each) for name, each in compared.others.items()},
    }


def _scaled(gain: Spread, of_ns: float) -> Mapping[str, int]:
    return {name: round(part * of_ns) for name, part in _parts(gain).items()}


def _nanoseconds(taken: Spread) -> Mapping[str, int]:
    return {
        "median": round(taken.median * 1e9),
        "low": round(taken.low * 1e9),
        "high": round(taken.high * 1e9),
    }


def _parts(part: Spread) -> Mapping[str, float]:
    return {
        "median": round(part.median, 4),
        "low": round(part.low, 4),
        "high": round(part.high, 4),
    }


def _trial_json(trial: Trial) -> Result:
    return {
        "what": trial.label,
        "occurrences": trial.occurrences,
        "recorded_ns": trial.recorded_ns,
        "calls_a_sample": trial.calls,
        "ns": {name: _nanoseconds(words.spread(each)) for name, each in trial.seconds.items()},
    }
