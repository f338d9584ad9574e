"""The shape of the answers that look into a trace, set two side by side, replay or draw."""

from __future__ import annotations

from typing import Any

from mcp_types import EmbeddedResource, TextResourceContents
from pydantic import Field, PrivateAttr

from neuron_explorer.mcp.answers import Answer, BoundTime, Part, Rows, ShortFinding, Trust


class SqlAnswer(Answer):
    result: Rows | None = None


class ColumnMeaning(Part):
    name: str
    type: str
    unit: str
    meaning: str
    references: str = Field(default="", description="Row of which view its value is the key of.")


class TableMeaning(Part):
    name: str
    meaning: str
    key: list[str] = Field(description="Columns that tell rows apart; [] = none do.")
    columns: list[ColumnMeaning]


class TermMeaning(Part):
    name: str
    value: float | str | None
    meaning: str


class SchemaAnswer(Answer):
    rules: list[str] = Field(default_factory=list, description="True of every view.")
    tables: list[TableMeaning] = Field(default_factory=list)
    words: list[TermMeaning] = Field(default_factory=list, description="Codes of a word list.")
    index: dict[str, str] = Field(
        default_factory=dict, description="Every view and word list with what it holds."
    )


class SourceLine(Part):
    line: int
    text: str | None = Field(description="null = the trace did not keep it.")
    function: str | None = None
    device_ns: int | None = Field(default=None, description="Device time it caused (ns).")
    host_ns: int | None = None
    bytes: int | None = None
    flops: int | None = None
    bound: str | None = None
    findings: list[str] = Field(default_factory=list, description="Ids of findings here.")


class FileCost(Part):
    file: str
    device_ns: int | None
    host_ns: int | None
    lines: int


class SourceAnswer(Answer):
    file: str | None = None
    lines: list[SourceLine] = Field(default_factory=list)
    next_line: int | None = Field(default=None, description="First line of the next page.")
    files: list[FileCost] = Field(
        default_factory=list, description="Files of the trace, the costliest first."
    )


class NamedTime(Part):
    name: str
    count: int
    time_ns: int = Field(description="Durations inside the window, added up (ns).")


class Lane(Part):
    device: str | None = Field(description="null = a host thread.")
    place: str = Field(description="Queue or thread.")
    track: str = Field(description="work, ops, runtime, frames, ...")
    events: int
    busy_ns: int = Field(description="Union of the intervals inside the window (ns).")
    busy_share: float
    names: list[NamedTime] = Field(
        description="What took most; of host tracks nested events both count."
    )


class TimelineAnswer(Answer):
    rank: int | None = None
    from_ms: float | None = Field(default=None, description="Window, from the rank's first event.")
    to_ms: float | None = None
    recorded_ms: float | None = Field(
        default=None, description="Length of the whole rank's recording."
    )
    steps: list[int] = Field(default_factory=list, description="Steps that overlap the window.")
    lanes: list[Lane] = Field(default_factory=list, description="The busiest first.")
    lanes_left_out: int = 0


class RoofGroup(Part):
    group: str
    events: int
    device_time_ns: int
    bytes: int | None
    flops: int | None
    floor_ns: int | None = Field(description="Sum where known: faster is impossible on this chip.")
    share_of_floor: float | None = Field(description="Floor over the time it explains; 1 = roof.")
    intensity: float | None = Field(description="flops over bytes (flop/byte).")
    bound: str = Field(description="What holds back most of its time.")
    cost_known: float = Field(description="Share of its time with a known floor, 0 to 1.")


class ChipRoof(Part):
    chip: str
    modelled: bool | None
    bandwidth_bytes_per_s: float | None
    peak_flops: dict[str, float]
    origin: dict[str, str] = Field(description="Where each figure is from.")


class RooflineAnswer(Answer):
    by: str = ""
    groups: list[RoofGroup] = Field(default_factory=list, description="Most device time first.")
    groups_left_out: int = 0
    bounds: list[BoundTime] = Field(default_factory=list)
    chips: list[ChipRoof] = Field(default_factory=list)


class StepCompared(Part):
    base_ns: float | None
    new_ns: float | None
    program_ns: float | None = Field(description="What the program itself did to it (ns).")
    machine_ns: float | None = Field(description="What the machine did to the same work (ns).")
    band_ns: float | None = Field(description="What chance may do (ns); null = unknown.")
    verdict: str = Field(description="same, better, worse or unknown.")


class RowCompared(Part):
    kind: str = Field(description="line, module, op or queue.")
    name: str
    place: str | None = Field(description="file:line as it stands in the new trace.")
    verdict: str = Field(description="better, worse, new or gone.")
    delta_ns: float = Field(description="What the program does to it, a step (ns).")
    measure: str = Field(description="host, device or wait: where that time is spent.")
    base_ns: float | None
    new_ns: float | None
    band_ns: float | None


class FindingCompared(Part):
    verdict: str = Field(description="new or gone; worse or better: of another severity now.")
    was: str | None = Field(description="Its severity in the base, where that was another.")
    counted: bool = Field(description="false: it only stepped over a threshold.")
    finding: ShortFinding


class MetricCompared(Part):
    name: str
    unit: str
    base: float | None
    new: float | None
    band: float | None
    verdict: str
    missing: str = Field(description="Why a side has none.")


class CompareAnswer(Answer):
    base: str | None = Field(default=None, description="Short name of the base.")
    base_trust: Trust | None = Field(default=None, description="Of the base; trust is the new's.")
    changed: bool | None = Field(default=None, description="Whether anything beyond noise did.")
    changes: int | None = None
    step: StepCompared | None = None
    rows: list[RowCompared] = Field(
        default_factory=list, description="Lines, modules, ops and queues that changed."
    )
    rows_left_out: int = 0
    findings: list[FindingCompared] = Field(
        default_factory=list, description="New, gone, or of another severity."
    )
    metrics: list[MetricCompared] = Field(default_factory=list)
    notes: list[str] = Field(
        default_factory=list, description="What the two differ in besides, what is unknown."
    )


class VerifyAnswer(Answer):
    finding: ShortFinding | None = None
    verdict: str = ""
    said: str = Field(default="", description="The measurement in one line.")
    result: dict[str, Any] = Field(default_factory=dict)
    kept_in: str | None = Field(default=None, description="File beside the trace; null = not kept.")


class ScreenshotAnswer(Answer):
    screen: str = ""
    columns: int | None = None
    rows: int | None = None
    text: list[str] = Field(default_factory=list, description="The screen's lines, uncoloured.")
    svg_bytes: int | None = Field(default=None, description="The SVG is the attached resource.")
    _svg: str = PrivateAttr("")

    def attach(self, svg: str) -> None:
        self._svg = svg

    def attached(self) -> list[EmbeddedResource]:
        if not self._svg:
            return []
        uri = f"neuron-explorer://screenshot/{self.trace}/{self.screen}.svg"
        drawn = TextResourceContents(uri=uri, mime_type="image/svg+xml", text=self._svg)
        return [EmbeddedResource(resource=drawn)]
