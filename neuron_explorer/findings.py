"""What an analyzer says, whatever front end prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SEVERITIES = ("critical", "warning", "info")
"""Most severe first."""


@dataclass(frozen=True)
class Finding:
    """One judged waste: where, how much, how it is known, what to change."""

    id: str
    """Stable for the same input: analyzer and a hash of what it points at."""
    analyzer: str
    severity: str
    title: str
    message: str
    """What was seen, with its numbers."""
    advice: str
    """The change to make, at code level."""
    rank: int | None = None
    source_file: str | None = None
    source_line: int | None = None
    source_text: str | None = None
    """The source line itself, where the trace or the disk has it."""
    module: str | None = None
    device_time_ns: int | None = None
    share: float | None = None
    """Device time over the busy time of its devices, 0 to 1."""
    saving_low_ns: int | None = None
    saving_high_ns: int | None = None
    saving_likely_ns: int | None = None
    """Expected, between the two; None where the high is unknown."""
    saving_basis: str = ""
    figures: str = "measured"
    """measured, modelled or reported: what the numbers rest on."""
    confidence: str = "medium"
    evidence: Mapping[str, object] = field(default_factory=dict)
    event_ids: tuple[int, ...] = ()
    sql: str = ""
    """A query over the views that shows the rows behind it."""
    verified: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Combined:
    """What acting on all findings is worth together; time that two of them save counts once."""

    low_ns: int
    """At least: of findings that share no time, each at its low."""
    high_ns: int
    """At most: each event at the highest of its findings, and never more than the span."""
    span_ns: int | None
    """What it is a part of: all steps of a rank, or all that was recorded."""
    findings: int
    """Findings with a known saving."""
    unknown: int
    """Findings whose saving is unknown: in neither bound."""
    figures: str = "measured"
    """measured or modelled: savings of the two are never mixed."""

    @property
    def share(self) -> float | None:
        """`high_ns` over the span, 0 to 1."""
        return self.high_ns / self.span_ns if self.span_ns else None
