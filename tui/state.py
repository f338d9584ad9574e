"""What all screens share: the trace, what is known of it, and what the reader has selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from neuron_explorer.analyzers import NotApplicable
from neuron_explorer.findings import Finding
from neuron_explorer.reports.overview import Overview


class Spot(NamedTuple):
    """A source line."""

    file: str
    line: int


class EventKey(NamedTuple):
    """An event: ids are unique within a rank only."""

    rank: int
    event_id: int


class Modules(NamedTuple):
    """A module and those inside it."""

    label: str
    names: tuple[str, ...]
    """As the events have them."""


@dataclass
class State:
    """Filled by the app as answers come in; changed by whatever screen the reader is on."""

    files: Sequence[str] = ()
    """As the caller named them."""
    others: Sequence[str] = ()
    """Files of the trace to compare with, as the caller named them."""
    overview: Overview | None = None
    """None until it is known."""
    findings: list[Finding] = field(default_factory=list)
    """Ranked, those of the analyzers that have run so far."""
    not_applicable: list[NotApplicable] = field(default_factory=list)
    analyzers_left: int | None = None
    """Analyzers still to run; None = not begun."""
    finding: Finding | None = None
    """The one whose evidence is looked at."""
    spot: Spot | None = None
    event: EventKey | None = None
    step: int | None = None
    modules: Modules | None = None
    """Those whose ops the Ops screen is to show when it comes to the front; None = leave it."""
    query: str = ""
    """Text to put into the SQL screen when it comes to the front; empty = leave it."""

    def select_finding(self, finding: Finding) -> None:
        """Its line becomes the selected line, its first event the selected event."""
        self.finding = finding
        if finding.source_file is not None and finding.source_line is not None:
            self.spot = Spot(finding.source_file, finding.source_line)
        if finding.event_ids and finding.rank is not None:
            self.event = EventKey(finding.rank, finding.event_ids[0])

    def findings_at(self, file: str, line: int) -> list[Finding]:
        """Those that point at a line, in their own order."""
        return [f for f in self.findings if (f.source_file, f.source_line) == (file, line)]
