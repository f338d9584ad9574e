"""Records the queues of every registered source beside torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.capture.companions import Remark
from neuron_explorer.collectors.events import Bools, Ints
from neuron_explorer.collectors.interning import Column
from neuron_explorer.collectors.queue_sources import (
    EVENTS,
    LAUNCHES,
    Batch,
    ClockReading,
    QueueSource,
    registered_sources,
)
from neuron_explorer.collectors.recorded import RECORDED, as_recorded

_KINDS = {
    "copy": "memcpy",
    "copy_in": "memcpy",
    "copy_out": "memcpy",
    "collective": "collective",
    "dma": "dma",
}
"""Kind of a hardware row by that of its queue; `kernel` for all else."""


@dataclass
class _Recording:
    source: QueueSource
    started: ClockReading
    stopped: ClockReading | None = None
    batch: Batch | None = None


class QueueRecorder:
    """The queues of all sources that are registered when a window begins."""

    def __init__(self) -> None:
        self._recordings: list[_Recording] = []
        self._remarks: list[Remark] = []
        self._facts: dict[str, Any] = {}

    def start(self) -> None:
        """Start every source; one that raises is left out, and said so."""
        self._recordings, self._remarks, self._facts = [], [], {}
        for source in registered_sources():
            self._guarded(source, partial(self._start, source))

    def _start(self, source: QueueSource) -> None:
        reading = _reading(source)
        source.start()
        self._recordings.append(_Recording(source, reading))

    def stop(self) -> None:
        """Stop and drain every source that runs."""
        for recording in self._recordings:
            if recording.batch is None:
                self._guarded(recording.source, partial(_stop, recording))

    def rows(self, clock: Alignment) -> pa.Table:
        """Events, launches and other rows of all sources, on torch's clock."""
        tables = [RECORDED.empty_table()]
        for space, recording in enumerate(self._recordings):
            if recording.batch is not None:
                step = partial(self._add, tables, recording, clock, space)
                self._guarded(recording.source, step)
        return pa.concat_tables(tables)

    def _add(
        self, tables: list[pa.Table], recording: _Recording, clock: Alignment, space: int
    ) -> None:
        tables.extend(self._tables(recording, clock, space))

    def facts(self) -> Mapping[str, object]:
        return {"queue_sources": self._facts} if self._facts else {}

    def remarks(self) -> Sequence[Remark]:
        return self._remarks

    def _guarded(self, source: QueueSource, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - a source must never end the job
            self._remarks.append(("queue_source_failed", f"{source.name}: {error!r}", 1))

    def _tables(self, recording: _Recording, clock: Alignment, space: int) -> list[pa.Table]:
        source, batch = recording.source, recording.batch
        if batch is None or recording.stopped is None:
            return []
        to_host = _HostTime(recording.started, recording.stopped)
        events = _complete(batch.events, EVENTS)
        if events["start_ns"].null_count or events["queue"].null_count:
            raise ValueError("an event has no queue or no start_ns")
        self._describe(recording, to_host, events)
        found = [_hardware(source, events, to_host, clock, space)]
        if batch.launches is not None:
            found.append(_runtime(_complete(batch.launches, LAUNCHES), clock, space))
        if batch.host is not None:
            found.append(_shifted(_complete(batch.host, RECORDED), clock))
        return found

    def _describe(self, recording: _Recording, to_host: _HostTime, events: pa.Table) -> None:
        source, dropped = recording.source, dict(recording.batch.dropped if recording.batch else {})
        early, late = to_host.outside(events)
        self._facts[source.name] = {
            "device": source.device,
            "queues": dict(source.queues),
            "events": events.num_rows,
            "dropped": dropped,
            "clock_drift_ppm": to_host.drift_ppm,
            "clock_uncertainty_ns": to_host.uncertainty_ns,
            "outside_window": early + late,
            "facts": dict(getattr(source, "facts", {})),
        }
        if lost := sum(dropped.values()):
            self._remarks.append(("queue_events_dropped", f"{source.name}: {dropped}", lost))
        if early + late:
            example = f"{source.name}: {early} before the window, {late} after it"
            self._remarks.append(("queue_events_outside", example, early + late))
        if backwards := int((~_forwards(events) & pc.is_valid(events["end_ns"]).to_numpy()).sum()):
            example = f"{source.name}: an end before its start"
            self._remarks.append(("queue_events_reversed", example, backwards))


_READINGS = 5
"""The first one pays for first calls, and any may be interrupted: the tightest counts."""


def _reading(source: QueueSource) -> ClockReading:
    readings = [source.clock() for _ in range(_READINGS)]
    return min(readings, key=lambda reading: reading.uncertainty_ns)


def _stop(recording: _Recording) -> None:
    recording.source.stop()
    recording.stopped = _reading(recording.source)
    recording.batch = recording.source.drain()


class _HostTime:
    """A source's clock as that of the host: two readings, and evenly between them."""

    def __init__(self, first: ClockReading, last: ClockReading) -> None:
        self._first, self._last = first, last
        device, host = last.device_ns - first.device_ns, last.host_ns - first.host_ns
        self._rate = host / device if device > 0 else 1.0
        self.drift_ppm = round((device / host - 1) * 1e6, 3) if host > 0 else None
        """By how much the source's clock runs faster than the host's."""
        self.uncertainty_ns = max(first.uncertainty_ns, last.uncertainty_ns)

    def of(self, times: Ints) -> Ints:
        since = times - self._first.device_ns
        converted: Ints = self._first.host_ns + np.rint(since * self._rate).astype(np.int64)
        return converted

    def outside(self, events: pa.Table) -> tuple[int, int]:
        """How many events begin before the first reading, and how many after the last."""
        start = events["start_ns"].to_numpy()
        early = int((start < self._first.device_ns).sum())
        return early, int((start > self._last.device_ns).sum())


def _hardware(
    source: QueueSource, events: pa.Table, to_host: _HostTime, clock: Alignment, space: int
) -> pa.Table:
    queue = events["queue"].to_pylist()
    kinds = [source.queues.get(str(name), "compute") for name in queue]
    known = _forwards(events)
    ends = clock.to_torch(to_host.of(_ends(events)))
    starts = clock.to_torch(to_host.of(events["start_ns"].to_numpy()))
    return as_recorded(
        {
            "role": [f"hardware/{_KINDS.get(kind, 'kernel')}" for kind in kinds],
            "name": events["name"],
            "start_ns": starts,
            "duration_ns": pa.array(ends - starts, mask=~known),
            "device_name": [source.device] * len(queue),
            "queue": queue,
            "queue_kind": kinds,
            "correlation_space": [space] * len(queue),
            **{name: events[name] for name in _KEPT},
        }
    )


def _ends(events: pa.Table) -> Ints:
    """The end of each event, its start where that is unknown."""
    ends: Ints = pc.coalesce(events["end_ns"], events["start_ns"]).to_numpy()
    return ends


def _forwards(events: pa.Table) -> Bools:
    """Which events have an end, no earlier than their start."""
    known: Bools = pc.is_valid(events["end_ns"]).to_numpy()
    return known & (_ends(events) >= events["start_ns"].to_numpy())


_KEPT = (
    "correlation",
    "read_bytes",
    "write_bytes",
    "flops",
    "graph_id",
    "modelled_start_ns",
    "modelled_duration_ns",
    "attributes",
)


def _runtime(launches: pa.Table, clock: Alignment, space: int) -> pa.Table:
    start = clock.to_torch(launches["start_ns"].to_numpy())
    end = clock.to_torch(launches["end_ns"].to_numpy())
    return as_recorded(
        {
            "role": [f"runtime/{kind}" for kind in launches["kind"].to_pylist()],
            "name": launches["name"],
            "start_ns": start,
            "duration_ns": np.maximum(end - start, 0),
            "tid": launches["tid"],
            "correlation": launches["correlation"],
            "correlation_space": [space] * launches.num_rows,
            "modelled_start_ns": launches["modelled_start_ns"],
            "modelled_duration_ns": launches["modelled_duration_ns"],
        }
    )


def _shifted(host: pa.Table, clock: Alignment) -> pa.Table:
    place = host.schema.get_field_index("start_ns")
    start = pa.array(clock.to_torch(host["start_ns"].to_numpy()), pa.int64())
    return host.set_column(place, host.schema.field(place), start)


def _complete(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with all columns of a schema, NULL where it has none.

    Raises:
        pa.ArrowInvalid: A column has another type and cannot be cast.
    """
    columns: list[Column] = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
