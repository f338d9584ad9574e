"""Events that a capture wrote down itself, beside torch's trace, on their way into the buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.collectors.attribution import Reported
from neuron_explorer.collectors.events import (
    RECORDED_TEXTS,
    SPOOLED,
    UNKNOWN,
    EventBuffer,
    Ints,
)
from neuron_explorer.collectors.interning import Column

_COLUMNS: dict[str, Any] = {
    "role": pa.string(),
    "name": pa.string(),
    "start_ns": pa.int64(),
    "duration_ns": pa.int64(),
    "tid": pa.int64(),
    "module_class": pa.string(),
    "graph_id": pa.string(),
    "reason": pa.string(),
    "stack": pa.string(),
    "device_name": pa.string(),
    "queue": pa.string(),
    "queue_kind": pa.string(),
    "correlation": pa.int64(),
    "correlation_space": pa.int64(),
    "read_bytes": pa.int64(),
    "write_bytes": pa.int64(),
    "flops": pa.int64(),
    "modelled_start_ns": pa.int64(),
    "modelled_duration_ns": pa.int64(),
    "attributes": pa.string(),
}
RECORDED = pa.schema(_COLUMNS)
"""`layer/kind` of `schema.KINDS`, Unix ns on torch's clock, native thread id, and columns of
the event table as they stand there. Only `role`, `name` and `start_ns` are never NULL.
`correlation_space` tells the ids of one source from those of another, and of torch's own."""

_SPACE = -(1 << 61)
"""Correlation ids of a space lie in memory from here on, so that they equal no other's."""
_SPACE_SIZE = 1 << 48


def recorded_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of `RECORDED`; what a row does not name is NULL.

    Raises:
        KeyError: A row names a column that there is none of.
    """
    unknown = {name for row in rows for name in row} - set(RECORDED.names)
    if unknown:
        raise KeyError(f"no such column: {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist(list(rows), RECORDED)


def as_recorded(columns: Mapping[str, Any]) -> pa.Table:
    """A table of `RECORDED` from whole columns; what is not named is NULL."""
    rows = len(columns["role"])
    arrays: list[Column] = []
    for field in RECORDED:
        column = columns.get(field.name)
        if column is None:
            arrays.append(pa.nulls(rows, field.type))
        elif isinstance(column, pa.Array | pa.ChunkedArray):
            arrays.append(column.cast(field.type))
        else:
            arrays.append(pa.array(column, field.type))
    return pa.table(arrays, schema=RECORDED)


def append_recorded(buffer: EventBuffer, table: pa.Table, base_ns: int, pid: str) -> Reported:
    """Add the rows to a buffer, on the threads that the trace's own events have.

    Returns:
        Rows, FLOPs and the bytes that each reads and writes, of those that say so.

    Args:
        buffer: Where the events of the trace lie already.
        table: Columns of `RECORDED`.
        base_ns: Unix time of the buffer's time 0.
        pid: Process id as the trace writes it.
    """
    names, rows = buffer.names, table.num_rows
    none, missing = np.full(rows, -1, np.int32), np.full(rows, UNKNOWN, np.int64)
    dense: dict[str, Any] = {
        "start": _integers(table["start_ns"]) - base_ns,
        "duration": _integers(table["duration_ns"]),
        "name": names.name.codes(table["name"]),
        "role": names.role.codes(table["role"]).astype(np.int16),
        "track": names.track.codes(_tracks(table["tid"], pid)),
        "inputs": none,
        "backward": np.zeros(rows, np.bool_),
    }
    sparse: dict[str, Any] = {}
    for name in RECORDED_TEXTS:
        codes = names.recorded[name].codes(table[name])
        sparse[name] = np.where(codes < 0, missing, codes)
    sparse["correlation"] = _correlations(table)
    first = buffer.rows
    buffer.append(dense, sparse, _spooled(table))
    flops, read, write = (_integers(table[n]) for n in ("flops", "read_bytes", "write_bytes"))
    told = np.flatnonzero((flops != UNKNOWN) | (read != UNKNOWN) | (write != UNKNOWN))
    return told + first, flops[told], read[told], write[told]


def _tracks(tid: Column, pid: str) -> Column:
    # the threads of a window are few, its rows may be many
    encoded = tid.combine_chunks().dictionary_encode()
    texts = [f"{pid}\t{number}" for number in encoded.dictionary.to_pylist()]
    tracks: Column = pa.DictionaryArray.from_arrays(
        pc.fill_null(encoded.indices, pa.scalar(len(texts), pa.int32())),
        pa.array([*texts, f"{pid}\t"], pa.string()),
    )
    return tracks.cast(pa.string())


def _correlations(table: pa.Table) -> Ints:
    given, space = _integers(table["correlation"]), _integers(table["correlation_space"])
    moved = _SPACE + space * _SPACE_SIZE + given
    return np.where((given == UNKNOWN) | (space == UNKNOWN), given, moved)


def _integers(column: Column) -> Ints:
    filled: Column = pc.fill_null(column, pa.scalar(UNKNOWN, pa.int64()))
    return np.asarray(filled.to_numpy(), np.int64)


def _spooled(table: pa.Table) -> pa.RecordBatch:
    columns: list[Column] = [
        table[column.name].combine_chunks()
        if column.name in RECORDED.names
        else pa.nulls(table.num_rows, column.type)
        for column in SPOOLED
    ]
    return pa.record_batch(columns, schema=SPOOLED)
