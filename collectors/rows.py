"""Finished columns of the event table, a slice of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.collectors.attribution import SEPARATOR, Costs
from neuron_explorer.collectors.events import (
    SPOOLED,
    SURROGATE,
    UNKNOWN,
    Bools,
    Events,
    Ints,
    Spool,
)
from neuron_explorer.collectors.interning import NULL, Codes, Column, Interner, dictionary_array
from neuron_explorer.collectors.linking import LINK_VIA, Links
from neuron_explorer.collectors.linking.sources import VIAS
from neuron_explorer.collectors.writer import ROWS_A_GROUP
from neuron_explorer.schema import COLUMNS, PHASES, arrow_schema

CPU = -2
"""Device code of host memory."""


@dataclass
class Track:
    """Process and thread of a row, as the trace wrote them and as numbers."""

    pid_raw: str
    tid_raw: str
    thread_name: str | None = None

    @property
    def pid(self) -> int | None:
        return _integer(self.pid_raw)

    @property
    def tid(self) -> int | None:
        return _integer(self.tid_raw)


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if abs(number) < 1 << 63 else None


@dataclass
class TraceRows:
    """Everything that makes the event table of one file."""

    events: Events
    links: Links
    costs: Costs
    tracks: list[Track]
    spool: Spool
    base_ns: int
    rank: int
    device_type: str
    raw_start: dict[int, int] = field(default_factory=dict)
    raw_duration: dict[int, int] = field(default_factory=dict)
    keep: Bools | None = None
    """Rows that are events of their own; None = all."""

    def tables(self) -> Iterator[pa.Table]:
        """The event table in row groups, in the trace's order."""
        waiting: list[pa.RecordBatch] = []
        first = rows = 0
        for batch in self.spool.batches():
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= ROWS_A_GROUP:
                yield self._table(first, pa.Table.from_batches(waiting))
                waiting, first, rows = [], first + rows, 0
        if waiting:
            yield self._table(first, pa.Table.from_batches(waiting))

    def _table(self, first: int, spooled: pa.Table) -> pa.Table:
        part = slice(first, first + spooled.num_rows)
        columns = {**self._identity(part), **self._links(part), **self._sources(part)}
        columns |= {**self._work(part), **self._spooled(spooled)}
        rows = part.stop - part.start
        arrays = [columns[c.name] if c.name in columns else _nulls(rows, c.type) for c in COLUMNS]
        table = pa.table(arrays, schema=arrow_schema())
        return table if self.keep is None else table.filter(pa.array(self.keep[part]))

    @cached_property
    def _new_ids(self) -> Ints:
        keep = np.ones(len(self.events), np.bool_) if self.keep is None else self.keep
        return np.cumsum(keep) - 1

    @cached_property
    def _hardware(self) -> Bools:
        return self.events.roles("hardware/", "framework/device_annotation")

    def _identity(self, part: slice) -> dict[str, Column]:
        events, track = self.events, self.events.track[part]
        track = np.where(self._hardware[part], NULL, track).astype(np.int32)
        role = events.role[part].astype(np.int32)
        start = events.start[part]
        texts = self._texts
        return {
            "event_id": pa.array(self._new_ids[part]),
            "rank": pa.array(np.full(len(track), self.rank, np.int32)),
            "pid": _integers(self._pid[track]),
            "tid": _integers(self._tid[track]),
            "pid_raw": dictionary_array(self._pid_raw[events.track[part]], texts["pid_raw"]),
            "tid_raw": dictionary_array(self._tid_raw[events.track[part]], texts["tid_raw"]),
            "thread_name": dictionary_array(self._thread[events.track[part]], texts["thread"]),
            "layer": dictionary_array(self._layer[role], texts["layer"]),
            "kind": dictionary_array(self._kind[role], texts["kind"]),
            "name": dictionary_array(events.name[part], texts["name"]),
            "start_ns": _integers(np.where(start == UNKNOWN, UNKNOWN, start + self.base_ns)),
            "duration_ns": _integers(events.duration[part]),
            "raw_start_ns": self._sparse(self.raw_start, part, self.base_ns),
            "raw_duration_ns": self._sparse(self.raw_duration, part),
            "device": self._devices(part),
            "queue": self._queues(part),
            "stream": _integers(np.where(events.stream[part] < 0, UNKNOWN, events.stream[part])),
        }

    def _links(self, part: slice) -> dict[str, Column]:
        links, events = self.links, self.events
        known = links.compiled_known[part]
        return {
            "self_ns": _integers(links.self_ns[part]),
            "step": _integers(links.step[part]),
            "parent_id": self._ids(links.parent[part]),
            "launch_id": self._ids(links.launch[part]),
            "op_id": self._ids(links.op[part]),
            "forward_id": self._ids(links.forward[part]),
            "link_via": dictionary_array(links.via[part], LINK_VIA),
            "correlation": _integers(_recorded(events.correlation[part])),
            "external_id": _integers(events.external_id[part]),
            "sequence": _integers(events.sequence[part]),
            "compiled": pa.array(links.compiled[part], pa.bool_(), mask=~known),
            "phase": dictionary_array(
                np.where(known, links.phase[part], NULL).astype(np.int32), PHASES
            ),
        }

    def _sources(self, part: slice) -> dict[str, Column]:
        sources, texts = self.links.sources, self._texts
        source, user = sources.source[part], sources.user[part]
        return {
            "source_file": dictionary_array(self._frame_file[source], texts["file"]),
            "source_line": _integers(self._frame_line[source], pa.int32()),
            "source_function": dictionary_array(self._frame_function[source], texts["function"]),
            "user_file": dictionary_array(self._frame_file[user], texts["file"]),
            "user_line": _integers(self._frame_line[user], pa.int32()),
            "user_function": dictionary_array(self._frame_function[user], texts["function"]),
            "source_via": dictionary_array(sources.via[part], VIAS),
            "stack": dictionary_array(sources.stack[part], texts["stack"]),
            "module": dictionary_array(self._module[sources.module[part]], texts["module"]),
            "module_class": dictionary_array(
                self._module_class[sources.module[part]], texts["class"]
            ),
        }

    def _work(self, part: slice) -> dict[str, Column]:
        costs, texts, inputs = self.costs, self._texts, self.events.inputs[part]
        hardware = self._hardware[part] & (self.links.op[part] >= 0)
        inputs = np.where(hardware, self.events.inputs[self.links.op[part]], inputs)
        return {
            **{
                name: dictionary_array(self._input_parts[place][inputs], texts[name])
                for place, name in enumerate(_INPUT_COLUMNS)
            },
            "output_shapes": dictionary_array(costs.outputs[part], texts["outputs"]),
            "family": dictionary_array(costs.family[part], texts["family"]),
            "flops": _integers(costs.flops[part]),
            "read_bytes": _integers(costs.read[part]),
            "write_bytes": _integers(costs.write[part]),
            "cost_via": dictionary_array(costs.via[part], texts["via"]),
            "cost_note": dictionary_array(costs.note[part], texts["note"]),
        }

    def _spooled(self, spooled: pa.Table) -> dict[str, Column]:
        category = _whole(spooled["category"]).fill_null(NULL).to_numpy()
        columns: dict[str, Column] = {
            "category": dictionary_array(category, self._texts["category"])
        }
        for name in SPOOLED.names[1:]:
            columns[name] = _whole(spooled[name])
        return columns

    def _ids(self, rows: npt.NDArray[np.int32]) -> Column:
        return pa.array(self._new_ids[rows], pa.int64(), mask=rows < 0)

    def _sparse(self, values: dict[int, int], part: slice, base: int = 0) -> Column:
        column = np.full(part.stop - part.start, UNKNOWN, np.int64)
        for row, value in values.items():
            if part.start <= row < part.stop:
                column[row - part.start] = value + base
        return _integers(column)

    def _devices(self, part: slice) -> Column:
        device = self.events.device[part]
        texts = Interner(["cpu"])
        lookup = {CPU: 0, NULL: NULL}
        for number in np.unique(device).tolist():
            if number not in lookup:
                lookup[number] = texts.code(f"{self.device_type}:{number}")
        distinct, place = np.unique(device, return_inverse=True)
        codes = np.array([lookup[number] for number in distinct.tolist()], np.int32)[place]
        return dictionary_array(codes, texts.texts)

    def _queues(self, part: slice) -> Column:
        stream = np.where(self._hardware[part], self.events.stream[part], NULL)
        distinct, place = np.unique(stream, return_inverse=True)
        texts = Interner()
        codes = [texts.code(f"stream {s}") if s >= 0 else NULL for s in distinct.tolist()]
        return dictionary_array(np.array(codes, np.int32)[place], texts.texts)

    # Lookup columns below end with one place for code NULL (-1).

    @cached_property
    def _texts(self) -> dict[str, Column]:
        names, costs, sources = self.events.names, self.costs, self.links.sources
        roles = [text.split("/") for text in names.role.texts]
        lists: dict[str, list[str]] = {
            "name": names.name.texts,
            "category": names.category.texts,
            "layer": list(dict.fromkeys(layer for layer, _ in roles)),
            "kind": list(dict.fromkeys(kind for _, kind in roles)),
            "file": list(dict.fromkeys(frame.file for frame in sources.frames)),
            "function": list(dict.fromkeys(frame.function for frame in sources.frames)),
            "stack": sources.stacks,
            "module": list(dict.fromkeys(m.name for m in sources.modules)),
            "class": list(dict.fromkeys(m.cls for m in sources.modules)),
            "thread": list(dict.fromkeys(t.thread_name for t in self.tracks if t.thread_name)),
            "pid_raw": list(dict.fromkeys(t.pid_raw for t in self.tracks)),
            "tid_raw": list(dict.fromkeys(t.tid_raw for t in self.tracks)),
            "family": costs.families.texts,
            "outputs": costs.output_shapes.texts,
            "via": costs.vias.texts,
            "note": costs.notes.texts,
        }
        parts = [text.split(SEPARATOR) for text in names.inputs.texts]
        for place, name in enumerate(_INPUT_COLUMNS):
            lists[name] = list(dict.fromkeys(part[place] for part in parts if part[place]))
        return {name: pa.array(texts, pa.string()) for name, texts in lists.items()}

    def _codes(self, kind: str, values: list[str | None]) -> Codes:
        place = {text: code for code, text in enumerate(self._texts[kind].to_pylist())}
        codes = [NULL if value is None else place.get(value, NULL) for value in values]
        return np.array([*codes, NULL], np.int32)

    @cached_property
    def _input_parts(self) -> list[Codes]:
        parts = [text.split(SEPARATOR) for text in self.events.names.inputs.texts]
        return [
            self._codes(name, [part[place] for part in parts])
            for place, name in enumerate(_INPUT_COLUMNS)
        ]

    @cached_property
    def _layer(self) -> Codes:
        return self._codes("layer", [t.split("/")[0] for t in self.events.names.role.texts])

    @cached_property
    def _kind(self) -> Codes:
        return self._codes("kind", [t.split("/")[1] for t in self.events.names.role.texts])

    @cached_property
    def _pid(self) -> Ints:
        return _lookup([track.pid for track in self.tracks])

    @cached_property
    def _tid(self) -> Ints:
        return _lookup([track.tid for track in self.tracks])

    @cached_property
    def _pid_raw(self) -> Codes:
        return self._codes("pid_raw", [t.pid_raw if t.pid is None else None for t in self.tracks])

    @cached_property
    def _tid_raw(self) -> Codes:
        return self._codes("tid_raw", [t.tid_raw if t.tid is None else None for t in self.tracks])

    @cached_property
    def _thread(self) -> Codes:
        return self._codes("thread", [track.thread_name for track in self.tracks])

    @cached_property
    def _frame_file(self) -> Codes:
        return self._codes("file", [frame.file for frame in self.links.sources.frames])

    @cached_property
    def _frame_function(self) -> Codes:
        return self._codes("function", [frame.function for frame in self.links.sources.frames])

    @cached_property
    def _frame_line(self) -> Ints:
        return _lookup([frame.line for frame in self.links.sources.frames])

    @cached_property
    def _module(self) -> Codes:
        return self._codes("module", [module.name for module in self.links.sources.modules])

    @cached_property
    def _module_class(self) -> Codes:
        return self._codes("class", [module.cls for module in self.links.sources.modules])


_INPUT_COLUMNS = ("input_shapes", "input_dtypes", "input_strides", "input_values")


def _nulls(rows: int, dtype: Any) -> Column:
    return pa.nulls(rows, dtype)


def _lookup(values: list[int | None]) -> Ints:
    return np.array([*(UNKNOWN if v is None else v for v in values), UNKNOWN], np.int64)


def _recorded(correlation: Ints) -> Ints:
    """Correlation ids beyond int64 were links only; the number stays in the attributes."""
    return np.where(correlation <= SURROGATE, UNKNOWN, correlation)


def _integers(values: Ints, dtype: Any = None) -> Column:
    return pa.array(values, dtype or pa.int64(), mask=values == UNKNOWN)


def _whole(column: Column) -> Column:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
