"""From a full event buffer to a written trace: repair, link, cost, write. One path for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuron_explorer.collectors.ahead import ahead
from neuron_explorer.collectors.attribution import attribute
from neuron_explorer.collectors.events import UNKNOWN, Bools, EventBuffer, Events, Ints
from neuron_explorer.collectors.linking import link
from neuron_explorer.collectors.repairs import repair_times
from neuron_explorer.collectors.rows import TraceRows, Track
from neuron_explorer.collectors.source_text import source_excerpts
from neuron_explorer.collectors.writer import TraceWriter
from neuron_explorer.schema import SCHEMA_VERSION, column_docs


@dataclass
class Gathered:
    """All that a collector or an importer knows of one process's events."""

    buffer: EventBuffer
    events: Events
    tracks: list[Track]
    """Process and thread by track code."""
    reported: tuple[Ints, Ints, Ints]
    """Rows, and the bytes the source itself says each reads and writes."""
    base_ns: int
    rank: int
    device_type: str
    raw_duration: dict[int, int] = field(default_factory=dict)
    keep: Bools | None = None
    """Rows that are events of their own; None = all."""
    user_prefixes: tuple[str, ...] = ()


def assemble(gathered: Gathered) -> TraceRows:
    """Repair, link and cost the events."""
    events = gathered.events
    repairs = repair_times(events)
    processes = {pid: code for code, pid in enumerate({t.pid_raw for t in gathered.tracks})}
    process_of = np.array([processes[t.pid_raw] for t in gathered.tracks], np.int32)
    links = link(events, process_of[events.track], gathered.user_prefixes)
    return TraceRows(
        events=events,
        links=links,
        costs=attribute(events, links, gathered.reported),
        tracks=gathered.tracks,
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
    for table in ahead(rows.tables()):
        writer.write(table)
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
    events = rows.events
    timed = (events.start != UNKNOWN) & ~events.roles("meta/")
    start, end = events.start[timed], events.end[timed]
    counts = np.bincount(events.role, minlength=len(events.names.role))
    return {
        "events": written,
        "rank": rows.rank,
        "by_kind": dict(zip(events.names.role.texts, counts.tolist(), strict=True)),
        "start_ns": int(start.min()) + rows.base_ns if len(start) else None,
        "end_ns": int(end.max()) + rows.base_ns if len(end) else None,
    }
