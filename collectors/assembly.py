"""From a full event buffer to a written trace: repair, link, cost, write. One path for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from neuron_explorer.collectors.ahead import ahead
from neuron_explorer.collectors.attribution import Reported, attribute
from neuron_explorer.collectors.events import UNKNOWN, Bools, EventBuffer, Events, Places
from neuron_explorer.collectors.linking import link
from neuron_explorer.collectors.linking.frames import USUAL, Owners
from neuron_explorer.collectors.linking.kernels import CompiledGraph
from neuron_explorer.collectors.linking.nesting import blocks
from neuron_explorer.collectors.memory import give_back
from neuron_explorer.collectors.repairs import repair_times
from neuron_explorer.collectors.row_codes import Track
from neuron_explorer.collectors.rows import TraceRows
from neuron_explorer.collectors.source_text import source_excerpts
from neuron_explorer.collectors.writer import TraceWriter
from neuron_explorer.schema import SCHEMA_VERSION, column_docs

_GROUPS_BETWEEN_TRIMS = 16


@dataclass
class Gathered:
    """All that a collector or an importer knows of one process's events."""

    buffer: EventBuffer
    events: Events
    tracks: list[Track]
    """Process and thread by track code."""
    places: Places
    reported: Reported
    base_ns: int
    rank: int
    device_type: str
    raw_duration: dict[int, int] = field(default_factory=dict)
    keep: Bools | None = None
    """Rows that are events of their own; None = all."""
    owners: Owners = USUAL
    compiled_graphs: Sequence[CompiledGraph] = ()
    """Graphs that a capture saw being compiled."""


def assemble(gathered: Gathered) -> TraceRows:
    """Repair, link and cost the events."""
    events = gathered.events
    give_back()
    repairs = repair_times(events, gathered.places)
    processes: dict[str, int] = {}
    process_of_track = [processes.setdefault(t.pid_raw, len(processes)) for t in gathered.tracks]
    links = link(
        events,
        np.array(process_of_track, np.int32),
        gathered.owners,
        [replace(g, since_ns=g.since_ns - gathered.base_ns) for g in gathered.compiled_graphs],
    )
    give_back()
    costs = attribute(events, links, gathered.reported)
    give_back()
    return TraceRows(
        events=events,
        links=links,
        costs=costs,
        tracks=gathered.tracks,
        places=gathered.places,
        spool=gathered.buffer.spool,
        base_ns=gathered.base_ns,
        rank=gathered.rank,
        device_type=gathered.device_type,
        raw_start=repairs.raw_start,
        raw_duration=gathered.raw_duration | repairs.raw_duration,
        keep=gathered.keep,
    )


def write_trace(
    writer: TraceWriter, rows: TraceRows, metadata: Mapping[str, Any], *, embed_sources: bool
) -> int:
    """Write all rows and the file's metadata; returns the number of events."""
    written = 0
    for number, table in enumerate(ahead(rows.tables())):
        writer.write(table)
        if number % _GROUPS_BETWEEN_TRIMS == 0:
            give_back()
        written += table.num_rows
    writer.describe(
        {
            "schema_version": SCHEMA_VERSION,
            "columns": column_docs(),
            "sources": source_excerpts(rows.links.sources) if embed_sources else {},
            "summary": _summary(rows, written),
            **metadata,
        }
    )
    return written


def _summary(rows: TraceRows, written: int) -> dict[str, Any]:
    events, kinds = rows.events, rows.events.names.role.texts
    counts = np.zeros(len(kinds), np.int64)
    starts, ends = [], []
    timed = (events.start != UNKNOWN) & ~events.roles("meta/", "compiler/")
    for block in blocks(len(events)):
        counts += np.bincount(events.role[block], minlength=len(kinds))
        chosen = np.flatnonzero(timed[block]) + block.start
        if len(chosen):
            starts.append(int(events.start[chosen].min()))
            ends.append(int(events.end(chosen).max()))
    return {
        "events": written,
        "rank": rows.rank,
        "by_kind": dict(zip(kinds, counts.tolist(), strict=True)),
        "start_ns": min(starts) + rows.base_ns if starts else None,
        "end_ns": max(ends) + rows.base_ns if ends else None,
    }
