"""`chrome` and `perfetto`: the Trace Event Format, as torch.profiler writes it and to look at.

`chrome` is one JSON event a row, on the process and thread ids that torch uses.

`perfetto` is the same JSON arranged for https://ui.perfetto.dev: devices are processes, queues
are threads, slices of one queue that overlap lie on tracks beside it (Perfetto would drop them),
launches lead to their kernels and forward ops to their backward ops, and memory is a counter.
What a dry run models lies on tracks of its own.
No library writes Perfetto's own protobuf form in bounded memory and our importer reads JSON, so
both are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from neuron_explorer import __version__
from neuron_explorer.exchange import END, KEY, METADATA, STACK
from neuron_explorer.exports.event_json import STACKS, events_sql, flows_sql, stretches
from neuron_explorer.exports.modelled import (
    CATEGORY,
    arguments,
    modelled_places,
    modelled_slices,
)
from neuron_explorer.exports.sink import Sink
from neuron_explorer.exports.tracks import (
    Lanes,
    Track,
    drawn_tracks,
    labels,
    places,
    recorded_tracks,
)
from neuron_explorer.exports.window import Part
from neuron_explorer.trace import Trace

_FLOWS = {"launch": "launch", "forward": "forward to backward"}


def write_chrome(trace: Trace, part: Part, out: Sink) -> dict[str, object]:
    """As torch.profiler writes it: what reads its traces reads this."""
    found = places(trace, part)
    tracks = recorded_tracks(found)
    writer = _Writer(out, tracks, None)
    stacks = _begin(trace, part, out)
    for row in _events(trace, part, "as_recorded", stacks):
        writer.event(row)
    return _end(out, writer, {} if writer.labelled else tracks)


def write_perfetto(trace: Trace, part: Part, out: Sink) -> dict[str, object]:
    """Arranged for Perfetto's user interface."""
    found = _with_modelled(places(trace, part), modelled_places(trace, part))
    tracks = drawn_tracks(found)
    writer = _Writer(out, tracks, Lanes(found, tracks))
    flows = _Flows(trace, part)
    stacks = _begin(trace, part, out)
    for row in _events(trace, part, "to_draw", stacks):
        writer.event(row)
        writer.flows(row, flows)
        writer.memory(row)
    for row in modelled_slices(trace, part):
        writer.modelled(row)
    return _end(out, writer, tracks)


def _with_modelled(
    measured: Sequence[Mapping[str, Any]], modelled: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Below the devices of its rank."""
    return sorted([*measured, *modelled], key=lambda row: (row["rank"], not row["on_device"]))


def _events(
    trace: Trace, part: Part, phases: str, stacks: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """A stretch of time after the other, so that no more than one is sorted in memory."""
    for stretch in stretches(trace, part):
        yield from _rows(trace, events_sql(part, phases, stretch), {"stacks": stacks})


def _rows(
    trace: Trace, query: str, params: Mapping[str, object] | None = None
) -> Iterator[Mapping[str, Any]]:
    for batch in trace.batches(query, params):
        yield from _of(batch)


def _of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    columns = [column.to_pylist() for column in batch.columns]
    names = batch.schema.names
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


class _Flows:
    """Which slices the arrows of a part join, by rank and event."""

    def __init__(self, trace: Trace, part: Part) -> None:
        self.leaving: dict[tuple[int, int], list[tuple[str, int]]] = {}
        """Kind and target of those that begin there."""
        self.into: dict[tuple[int, int], str] = {}
        """Kind of the one that ends there."""
        for row in _rows(trace, flows_sql(part)):
            begin = row["rank"], row["source"]
            self.leaving.setdefault(begin, []).append((row["flow"], row["target"]))
            self.into[row["rank"], row["target"]] = row["flow"]


class _Writer:
    """Writes events one by one and counts them."""

    def __init__(self, out: Sink, tracks: Mapping[str, Track], lanes: Lanes | None) -> None:
        self._out, self._tracks, self._lanes = out, tracks, lanes
        self._thread: int | str = 0
        self.events = self.flow_pairs = self.counters = self.modelled_slices = 0
        self.labelled = False
        """Whether the trace names its processes itself."""

    def event(self, row: Mapping[str, Any]) -> None:
        """The event itself, and a counter's values as a viewer takes them."""
        track = self._tracks[row["place"]]
        self._thread = track.tid
        if row["ph"] == "X" and self._lanes is not None:
            self._thread = self._lanes.thread(row["place"], row["start_ns"], row["end_ns"])
        elif row["ph"] == "M" and row["name"] == "process_name":
            self.labelled = True
        self._out.write(f"{self._where(track)},{row['text']},\n")
        self.events += 1
        if row["counted"] is not None and row["start_ns"] is not None:
            self._counter(row, row["name"] or "", _numbers(row["counted"]))

    def flows(self, row: Mapping[str, Any], flows: _Flows) -> None:
        """The ends of the flows that meet in this event: they bind to the slice written last."""
        track, event = self._tracks[row["place"]], (row["rank"], row["event_id"])
        for flow, target in flows.leaving.get(event, ()):
            self._flow(track, row, "s", flow, target)
        into = flows.into.get(event)
        if into is not None:
            self._flow(track, row, "f", into, row["event_id"])
            self.flow_pairs += 1

    def memory(self, row: Mapping[str, Any]) -> None:
        """A device's allocator after the event."""
        totals = {"allocated": row["allocated"], "reserved": row["reserved"]}
        known = {name: value for name, value in totals.items() if value is not None}
        if known and row["start_ns"] is not None:
            self._counter(row, f"memory {row['device'] or ''}".rstrip(), known)

    def modelled(self, row: Mapping[str, Any]) -> None:
        """A slice that is no row of the trace."""
        assert self._lanes is not None
        track = self._tracks[row["place"]]
        self._thread = self._lanes.thread(row["place"], row["start_ns"], row["end_ns"])
        said = json.dumps({"name": row["name"], "args": arguments(row)}, ensure_ascii=False)
        times = f'"ts":{_us(row["start_ns"])},"dur":{_us(row["end_ns"] - row["start_ns"])}'
        self._out.write(f'{self._where(track)},"ph":"X","cat":"{CATEGORY}",{times},{said[1:]},\n')
        self.modelled_slices += 1

    def _flow(
        self, track: Track, row: Mapping[str, Any], phase: str, flow: str, event_id: int
    ) -> None:
        bind = ',"bp":"e"' if phase == "f" else ""
        number = (row["rank"] << 40) + event_id
        self._out.write(
            f'{self._where(track)},"ph":"{phase}"{bind},"id":{number},"cat":"{flow}",'
            f'"name":"{_FLOWS[flow]}","ts":{_us(row["start_ns"])}}},\n'
        )

    def _counter(self, row: Mapping[str, Any], name: str, values: Mapping[str, object]) -> None:
        if not values:
            return
        track = self._tracks[row["place"]]
        said = {"ph": "C", "ts": None, "name": name, "args": values}
        text = json.dumps(said, ensure_ascii=False)[1:].replace("null", _us(row["start_ns"]), 1)
        self._out.write(f"{self._where(track)},{text},\n")
        self.counters += 1

    def _where(self, track: Track) -> str:
        return f'{{"pid":{json.dumps(track.pid)},"tid":{json.dumps(self._thread)}'


def _us(ns: int) -> str:
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def _numbers(attributes: str) -> dict[str, object]:
    """The numeric values of a counter's args; text among them says what they are of."""
    values = json.loads(attributes)
    # args called KEY make a row, and this is a second picture of one
    return {k: v for k, v in values.items() if type(v) in {int, float} and k != KEY}


def _begin(trace: Trace, part: Part, out: Sink) -> list[str]:
    """The header in Kineto's words, then the file-level metadata and the stacks as events.

    Returns:
        The stacks in the order of their numbers.
    """
    metadata = _metadata(trace, part)
    own = {
        "tool_version": __version__,
        "schema_version": metadata.get("schema_version"),
        "ranks": list(part.ranks),
        "whole": part.whole,
    }
    environment = metadata.get("environment") or {}
    head: dict[str, object] = {"schemaVersion": 1, KEY: own}
    head |= {k: environment[k] for k in ("distributedInfo",) if k in environment}
    head |= {"deviceProperties": metadata.get("devices") or []}
    head |= {"displayTimeUnit": "ns", "baseTimeNanoseconds": part.base_ns}
    out.write(json.dumps(head, separators=(",", ":"))[:-1] + ',"traceEvents":[\n')
    for key, value in metadata.items() if len(part.ranks) == 1 else ():
        args = {METADATA: {"key": key, "value": value}}
        out.write(_told(METADATA, args))
    stacks = []
    for row in _rows(trace, STACKS.format(condition=part.condition)):
        args = {STACK: {"number": row["number"], "stack": row["stack"]}}
        out.write(_told(STACK, args))
        stacks.append(row["stack"])
    return stacks


_FILES = "SELECT file FROM trace_metadata WHERE list_contains($ranks, rank) ORDER BY rank, file"


def _metadata(trace: Trace, part: Part) -> Mapping[str, Any]:
    """That of the file of the first rank in the part."""
    rows = trace.sql(_FILES, {"ranks": list(part.ranks)}).to_pylist()
    known = {str(path): told for path, told in trace.metadata.items()}
    return known[rows[0]["file"]] if rows else next(iter(known.values()))


def _told(name: str, args: Mapping[str, object]) -> str:
    event = {"ph": "M", "pid": 0, "name": name, "args": args}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")) + ",\n"


def _end(out: Sink, writer: _Writer, tracks: Mapping[str, Track]) -> dict[str, object]:
    for label in labels(tracks):
        out.write(json.dumps(label, ensure_ascii=False) + ",\n")
    last = {"ph": "M", "pid": 0, "name": END, "args": {"count": writer.events}}
    out.write(json.dumps(last) + "\n]}\n")
    told = {"events": writer.events, "flows": writer.flow_pairs, "counters": writer.counters}
    more = {"modelled_slices": writer.modelled_slices} if writer.modelled_slices else {}
    return {**told, **more}
