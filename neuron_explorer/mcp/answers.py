"""The shape of answers: what the output schema of a tool tells an agent beforehand.

Here what all have in common, and the overview; `data_answers.py` has those of the other tools.
"""

from __future__ import annotations

from typing import Any, Literal

from mcp_types import EmbeddedResource
from pydantic import BaseModel, ConfigDict, Field

Cell = Any


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Trust(Part):
    """How far the figures of this trace can be relied on."""

    health: Literal["ok", "warn", "bad"] = Field(description="bad: figures would mislead.")
    problems: list[str] = Field(description="What failed, and what to do about it.")
    cost_coverage: float | None = Field(
        description="Share of the device time whose bytes are known, 0 to 1; null = no device time."
    )
    source_coverage: float | None = Field(
        description="Share of the device time whose source line is known, 0 to 1."
    )
    times: Literal["measured", "modelled"] = Field(
        description="modelled: a dry run without execution; no time in it was measured."
    )
    floors: Literal["of the recorded chip", "modelled", "unknown chip"] = Field(
        description="Whose roof work is held to: of the recorded chip, of another (modelled)."
    )


class Answer(Part):
    cannot_answer: str | None = Field(
        default=None,
        description="Why there is no answer, and what to do. Normal; all else is then empty.",
    )
    trace: str | None = Field(
        default=None, description="Short name of the trace, for the next call."
    )
    trust: Trust | None = Field(default=None, description="How far to rely on it.")
    strings_cut: int = Field(
        default=0, description="Strings of the trace that were cut to a bound."
    )

    def attached(self) -> list[EmbeddedResource]:
        """What comes beside the data."""
        return []


class Rows(Part):
    """Rows of a query."""

    columns: list[str] = Field(default_factory=list)
    rows: list[list[Cell]] = Field(default_factory=list, description="null = unknown, never 0.")
    truncated: bool = Field(default=False, description="Whether there are more rows than these.")


class Device(Part):
    rank: int
    device: str
    chip: str | None = Field(description="null = not recognised, so it has no roof.")
    busy_share: float | None = Field(description="Busy time over its span, 0 to 1.")


class OpenAnswer(Answer):
    files: list[str] = Field(default_factory=list)
    tool: str = Field(default="", description="What recorded it.")
    devices: list[Device] = Field(default_factory=list)
    ranks: int | None = None
    steps: int | None = Field(default=None, description="Training steps, all ranks together.")
    events: dict[str, int] = Field(default_factory=dict, description="Rows by layer.")
    known: list[str] = Field(default_factory=list, description="Traces by short name.")
    readable: list[str] = Field(
        default_factory=list, description="Some files that could be opened."
    )


class Saving(Part):
    low_ns: int | None = Field(description="At least (ns); null = unknown.")
    high_ns: int | None = Field(description="At most (ns); null = unknown.")
    likely_ns: int | None = Field(description="Expected, between the two (ns); null = unknown.")
    figures: str = Field(description="measured or modelled.")


class ShortFinding(Part):
    id: str
    analyzer: str
    severity: str = Field(description="critical, warning or info.")
    title: str
    place: str | None = Field(description="file:line, or the module.")
    saving: Saving
    device_time_ns: int | None = None
    confidence: str
    verified: str | None = Field(description="Verdict of verify, if it ran.")


class BoundTime(Part):
    bound: str
    device_time_ns: int
    share: float


class LineCost(Part):
    place: str
    device_ns: int | None
    host_ns: int | None
    bound: str | None


class SummaryAnswer(Answer):
    devices: list[Device] = Field(default_factory=list)
    steps: int | None = None
    step_mean_ns: int | None = None
    recorded_ns: int | None = Field(default=None, description="What savings are a part of (ns).")
    bounds: list[BoundTime] = Field(
        default_factory=list, description="Device time by what holds it back: see roofline."
    )
    lines: list[LineCost] = Field(default_factory=list, description="The costliest lines.")
    findings: list[ShortFinding] = Field(default_factory=list, description="The worthiest.")
    findings_total: int | None = None
    together: list[Saving] = Field(
        default_factory=list, description="All findings, shared time counted once."
    )
    not_applicable: int | None = Field(default=None, description="Analyzers with no answer here.")
    left_out: list[str] = Field(default_factory=list, description="Cut to stay within 4 KB.")


class NotApplicable(Part):
    analyzer: str
    reason: str


class FindingsAnswer(Answer):
    findings: list[ShortFinding] = Field(default_factory=list)
    total: int | None = Field(default=None, description="Findings that pass the filter.")
    next_offset: int | None = Field(default=None, description="null = this was the last page.")
    not_applicable: list[NotApplicable] = Field(
        default_factory=list, description="Analyzers that could not judge, and what is missing."
    )


class ExplainAnswer(Answer):
    finding: ShortFinding | None = None
    question: str = Field(default="", description="What the analyzer asks.")
    message: str = Field(default="", description="What was seen, with numbers.")
    advice: str = Field(default="", description="The change to make, at code level.")
    source_text: str | None = None
    rank: int | None = None
    share: float | None = Field(default=None, description="Of the device's busy time, 0 to 1.")
    saving_basis: str = ""
    figures: str = Field(default="", description="measured, modelled or reported.")
    thresholds: dict[str, Any] = Field(default_factory=dict)
    evidence: dict[str, Any] = Field(default_factory=dict)
    event_ids: list[int] = Field(default_factory=list, description="The first 50.")
    event_count: int | None = None
    sql: str = Field(default="", description="Shows the rows behind it.")
    result: Rows | None = Field(default=None, description="Those rows.")
    verified: dict[str, Any] | None = None
