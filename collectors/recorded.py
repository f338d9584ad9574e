"""Events that a capture wrote down itself, beside torch's trace, on their way into the buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    "attributes": pa.string(),
}
RECORDED = pa.schema(_COLUMNS)
"""`layer/kind` of `schema.KINDS`, Unix ns on torch's clock, native thread id, and columns of
the event table as they stand there. Only `role`, `name` and `start_ns` are never NULL."""


def recorded_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of `RECORDED`; what a row does not name is NULL.

    Raises:
        KeyError: A row names a column that there is none of.
    """
    unknown = {name for row in rows for name in row} - set(RECORDED.names)
    if unknown:
        raise KeyError(f"no such column: {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist(list(rows), RECORDED)


def append_recorded(buffer: EventBuffer, table: pa.Table, base_ns: int, pid: str) -> None:
    """Add the rows to a buffer, on the threads that the trace's own events have.

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
    buffer.append(dense, sparse, _spooled(table))


def _tracks(tid: Column, pid: str) -> Column:
    # the threads of a window are few, its rows may be many
    encoded = tid.combine_chunks().dictionary_encode()
    texts = [f"{pid}\t{number}" for number in encoded.dictionary.to_pylist()]
    tracks: Column = pa.DictionaryArray.from_arrays(
        pc.fill_null(encoded.indices, pa.scalar(len(texts), pa.int32())),
        pa.array([*texts, f"{pid}\t"], pa.string()),
    )
    return tracks.cast(pa.string())


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
