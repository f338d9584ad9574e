"""What an experiment says before anything runs: what to compare, on which recorded ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from neuron_explorer.analyzers.verify.recorded import CannotReplayError, RecordedOp
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

Run = Callable[[], Any]


class RefutedError(Exception):
    """The change itself turns out impossible: no measurement is needed; the message says why."""


@dataclass(frozen=True)
class Case:
    """A finding to verify, and where."""

    trace: Trace
    finding: Finding
    device: torch.device

    @property
    def rank(self) -> int:
        return self.finding.rank or 0

    def number(self, name: str) -> int:
        """A whole number of the finding's evidence; 0 where it is unknown."""
        value = self.finding.evidence.get(name)
        return value if isinstance(value, int) else 0


@dataclass(frozen=True)
class Variants:
    """Functions to time: `before`, `after`, and others only to be told."""

    runs: Mapping[str, Run]
    reset: Run | None = None
    """Undoes what they change in place."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setup:
    """One kind of work of the finding; `build` makes its tensors."""

    label: str
    occurrences: int
    recorded_ns: int
    """Recorded time of all occurrences."""
    ops: tuple[RecordedOp, ...]
    """What it needs to resolve, for the memory guard."""
    build: Callable[[], Variants]


@dataclass(frozen=True)
class Plan:
    """The experiment on one finding."""

    before: str
    after: str
    claim_of_ns: int
    """Recorded time that the finding's saving is a part of."""
    setups: Sequence[Setup]
    notes: tuple[str, ...] = field(default=())


def setups_alike(
    groups: Sequence[Sequence[RecordedOp]], build: Callable[[RecordedOp], Variants]
) -> list[Setup]:
    """A setup for each group of equal ops.

    Raises:
        CannotReplayError: There is no group.
    """
    if not groups:
        raise CannotReplayError("none of its events is an op that can run again")
    return [_alike(group, build) for group in groups]


def _alike(group: Sequence[RecordedOp], build: Callable[[RecordedOp], Variants]) -> Setup:
    first = group[0]
    return Setup(
        first.label,
        len(group),
        sum(op.duration_ns for op in group),
        (first,),
        lambda: build(first),
    )
