"""Finished columns of the event table, a slice of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.collectors.attribution import Costs
from neuron_explorer.collectors.events import (
    CPU_DEVICE,
    RECORDED_DEVICE,
    RECORDED_STREAM,
    SPOOLED,
    UNKNOWN,
    Bools,
    Events,
    Ints,
    Places,
    Spool,
)
from neuron_explorer.collectors.interning import NULL, Codes, Column, Interner, dictionary_array
from neuron_explorer.collectors.linking import LINK_VIA, Links
from neuron_explorer.collectors.linking.sources import VIAS
from neuron_explorer.collectors.row_codes import (
    INPUT_COLUMNS,
    PRICE_TEXTS,
    RowCodes,
    Track,
)
from neuron_explorer.collectors.writer import ROWS_A_GROUP
from neuron_explorer.schema import COLUMNS, PHASES, arrow_schema


@dataclass
class TraceRows:
    """Everything that makes the event table of one file."""

    events: Events
    links: Links
    costs: Costs
    tracks: list[Track]
    places: Places
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
        columns |= self._kernels(part, columns["attributes"])
        rows = part.stop - part.start
        arrays = [columns[c.name] if c.name in columns else _nulls(rows, c.type) for c in COLUMNS]
        table = pa.table(arrays, schema=arrow_schema())
        return table if self.keep is None else table.filter(pa.array(self.keep[part]))

    def _new_ids(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Event ids of rows: their number among the rows that are kept."""
        return rows if self._kept_before is None else self._kept_before[rows]

    @cached_property
    def _kept_before(self) -> Codes | None:
        return None if self.keep is None else np.cumsum(self.keep, dtype=np.int32) - 1

    @cached_property
    def _codes(self) -> RowCodes:
        return RowCodes(self.events, self.links.sources, self.costs.book, self.tracks)

    @cached_property
    def _hardware(self) -> Bools:
        return self.events.roles("hardware/", "framework/device_annotation")

    def _identity(self, part: slice) -> dict[str, Column]:
        events, track = self.events, self.events.track[part]
        track = np.where(self._hardware[part], NULL, track)
        device, stream = self._placed(part)
        role = events.role[part].astype(np.int32)
        start = events.start[part]
        texts = self._codes.texts
        return {
            "event_id": pa.array(self._new_ids(np.arange(part.start, part.stop)), pa.int64()),
            "rank": pa.array(np.full(len(track), self.rank, np.int32)),
            "pid": _integers(self._codes.pid[track]),
            "tid": _integers(self._codes.tid[track]),
            "pid_raw": dictionary_array(self._codes.pid_raw[events.track[part]], texts["pid_raw"]),
            "tid_raw": dictionary_array(self._codes.tid_raw[events.track[part]], texts["tid_raw"]),
            "thread_name": dictionary_array(
                self._codes.thread[events.track[part]], texts["thread"]
            ),
            "layer": dictionary_array(self._codes.layer[role], texts["layer"]),
            "kind": dictionary_array(self._codes.kind[role], texts["kind"]),
            "name": dictionary_array(events.name[part], texts["name"]),
            "start_ns": _integers(np.where(start == UNKNOWN, UNKNOWN, start + self.base_ns)),
            "duration_ns": _integers(events.duration[part]),
            "raw_start_ns": self._sparse(self.raw_start, part, self.base_ns),
            "raw_duration_ns": self._sparse(self.raw_duration, part),
            "device": self._devices(device),
            "queue": self._queues(np.where(self._hardware[part], stream, NULL)),
            "queue_kind": self._recorded("queue_kind", part),
            "stream": pa.array(stream, pa.int64(), mask=(stream < 0) | (stream >= RECORDED_STREAM)),
        }

    def _links(self, part: slice) -> dict[str, Column]:
        links = self.links
        step, phase = links.step[part], links.phase[part].astype(np.int32)
        return {
            "self_ns": _integers(links.self_ns[part]),
            "step": pa.array(step, pa.int64(), mask=step < 0),
            "parent_id": self._ids(links.parent[part]),
            "launch_id": self._ids(links.launch[part]),
            "op_id": self._ids(links.op[part]),
            **({} if links.forward is None else {"forward_id": self._ids(links.forward[part])}),
            "link_via": dictionary_array(links.via[part].astype(np.int32), LINK_VIA),
            # a row has a phase where it nests in a thread or was launched from one
            "compiled": pa.array(links.compiled[part], pa.bool_(), mask=phase < 0),
            "recomputed": pa.array(links.recomputed[part], pa.bool_(), mask=phase < 0),
            "phase": dictionary_array(phase, PHASES),
            "graph_id": dictionary_array(links.graphs.graph[part], links.graphs.ids),
            "compile_ns": _integers(links.graphs.compile_ns[part]),
            "reason": self._recorded("reason", part),
        }

    def _sources(self, part: slice) -> dict[str, Column]:
        sources, texts = self.links.sources, self._codes.texts
        columns: dict[str, Column] = {}
        for whose in ("source", "user"):
            file, line, function = (c[sources.stack[part]] for c in self._codes.frames[whose])
            columns[f"{whose}_file"] = dictionary_array(file, texts["file"])
            columns[f"{whose}_line"] = pa.array(line, pa.int32(), mask=line < 0)
            columns[f"{whose}_function"] = dictionary_array(function, texts["function"])
        return columns | {
            "source_via": dictionary_array(sources.via[part].astype(np.int32), VIAS),
            "stack": dictionary_array(sources.stack[part], texts["stack"]),
            "module": dictionary_array(self._codes.module[sources.module[part]], texts["module"]),
            "module_class": dictionary_array(
                self._codes.module_class[sources.module[part]], texts["class"]
            ),
        }

    def _work(self, part: slice) -> dict[str, Column]:
        op, inputs = self.links.op[part], self.events.inputs[part]
        inputs = np.where(self._hardware[part] & (op >= 0), self.events.inputs[op], inputs)
        price, numbers = self._priced(part)
        columns: dict[str, Column] = {}
        for place, name in enumerate(INPUT_COLUMNS):
            columns[name] = dictionary_array(
                self._codes.input_parts[place][inputs], self._codes.texts[name]
            )
        for name, column in PRICE_TEXTS.items():
            codes = self._codes.price_texts[name][price]
            columns[column] = dictionary_array(codes, self._codes.texts[name])
        columns |= {name: _integers(values) for name, values in numbers.items()}
        return columns

    def _priced(self, part: slice) -> tuple[Codes, dict[str, Ints]]:
        """Price and numbers of each row: an op's own, or a hardware row's share."""
        costs = self.costs
        price = costs.book.price[part].copy()
        low, high = np.searchsorted(costs.rows, (part.start, part.stop))
        rows = costs.rows[low:high] - part.start
        price[rows] = costs.price[low:high]
        numbers = {
            name: self._codes.price_numbers[name][price] for name in self._codes.price_numbers
        }
        shares = {"flops": costs.flops, "read_bytes": costs.read, "write_bytes": costs.write}
        for name, share in shares.items():
            numbers[name][rows] = share[low:high]
        return price, numbers

    def _placed(self, part: slice) -> tuple[Codes, Codes]:
        """Device and stream of each row; NULL where it has none."""
        places, rows = self.places, part.stop - part.start
        low, high = np.searchsorted(places.rows, (part.start, part.stop))
        device, stream = np.full(rows, NULL, np.int32), np.full(rows, NULL, np.int32)
        device[places.rows[low:high] - part.start] = places.device[low:high]
        stream[places.rows[low:high] - part.start] = places.stream[low:high]
        return device, stream

    def _spooled(self, spooled: pa.Table) -> dict[str, Column]:
        category = _whole(spooled["category"]).fill_null(NULL).to_numpy()
        columns: dict[str, Column] = {
            "category": dictionary_array(category, self._codes.texts["category"])
        }
        for name in SPOOLED.names[1:]:
            columns[name] = _whole(spooled[name])
        return columns

    def _kernels(self, part: slice, attributes: Column) -> dict[str, Column]:
        """Source lines of compiled kernels, and their operators among the attributes."""
        graphs = self.links.graphs
        if graphs.kernel is None or graphs.called is None:
            return {}
        codes = graphs.kernel[part]
        lines = [[f"{s.source.file}:{s.source.line}" for s in stacks] for stacks in graphs.stacks]
        sources = pa.array([named or None for named in lines], pa.list_(pa.string())).take(
            pa.array(codes, pa.int32(), mask=codes < 0)
        )
        called = graphs.called[part]
        named = np.flatnonzero(called)
        texts = [
            graphs.kernels[code].with_ops(attributes[place].as_py())
            for place, code in zip(named.tolist(), codes[named].tolist(), strict=True)
        ]
        replaced = pc.replace_with_mask(attributes, pa.array(called), pa.array(texts, pa.string()))
        return {"sources": sources, "attributes": replaced}

    def _recorded(self, name: str, part: slice) -> Column:
        """A text that only a capture's own rows have."""
        sparse, codes = self.events.recorded[name], np.full(part.stop - part.start, NULL, np.int32)
        low, high = np.searchsorted(sparse.rows, (part.start, part.stop))
        codes[sparse.rows[low:high] - part.start] = sparse.values[low:high]
        return dictionary_array(codes, self._codes.texts[name])

    def _ids(self, rows: npt.NDArray[np.int32]) -> Column:
        return pa.array(self._new_ids(rows), pa.int64(), mask=rows < 0)

    def _sparse(self, values: dict[int, int], part: slice, base: int = 0) -> Column:
        column = np.full(part.stop - part.start, UNKNOWN, np.int64)
        for row, value in values.items():
            if part.start <= row < part.stop:
                column[row - part.start] = value + base
        return _integers(column)

    def _devices(self, device: Codes) -> Column:
        texts = Interner()
        distinct, place = np.unique(device, return_inverse=True)
        codes = [NULL if n == NULL else texts.code(self._device_name(n)) for n in distinct.tolist()]
        return dictionary_array(np.array(codes, np.int32)[place], texts.texts)

    def _device_name(self, number: int) -> str:
        if number <= RECORDED_DEVICE:
            return self.events.names.recorded["device_name"].texts[RECORDED_DEVICE - number]
        return "cpu" if number == CPU_DEVICE else f"{self.device_type}:{number}"

    def _queues(self, stream: Codes) -> Column:
        texts = Interner()
        distinct, place = np.unique(stream, return_inverse=True)
        codes = [texts.code(self._queue_name(s)) if s >= 0 else NULL for s in distinct.tolist()]
        return dictionary_array(np.array(codes, np.int32)[place], texts.texts)

    def _queue_name(self, stream: int) -> str:
        if stream >= RECORDED_STREAM:
            return self.events.names.recorded["queue"].texts[stream - RECORDED_STREAM]
        return f"stream {stream}"


def _nulls(rows: int, dtype: Any) -> Column:
    return pa.nulls(rows, dtype)


def _integers(values: Ints) -> Column:
    return pa.array(values, pa.int64(), mask=values == UNKNOWN)


def _whole(column: Column) -> Column:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
