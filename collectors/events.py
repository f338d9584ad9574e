"""The columnar buffer between whoever makes events and the linking and writing after it.

What linking needs of every event stays in memory as NumPy columns (about 50 bytes an
event); the rest waits in a temporary file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.collectors.interning import Codes, Interner

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNKNOWN = np.iinfo(np.int64).min
"""Marks an unknown time, duration or id in the in-memory columns."""

SURROGATE = -(1 << 62)
"""Correlation ids beyond int64 stand here as codes from this number down: links need equality
only, and the exact text stays in the attributes."""

RESIDENT: dict[str, Any] = {
    "start": np.int64,
    "duration": np.int64,
    "correlation": np.int64,
    "sequence": np.int64,
    "external_id": np.int64,
    "name": np.int32,
    "role": np.int16,
    "track": np.int32,
    "inputs": np.int32,
    "device": np.int32,
    "stream": np.int32,
    "call_stack": np.int32,
    "backward": np.bool_,
}
"""In-memory columns: ns relative to the trace's base, codes of the interners, ids."""

_SPOOLED: dict[str, Any] = {
    "category": pa.int32(),
    "forward_thread": pa.int64(),
    "alloc_bytes": pa.int64(),
    "device_allocated": pa.int64(),
    "device_reserved": pa.int64(),
    "attributes": pa.string(),
}
SPOOLED = pa.schema(_SPOOLED)
"""Columns that only the writer reads again."""


@dataclass
class Names:
    """The interners of a file: text columns by code."""

    name: Interner = field(default_factory=Interner)
    category: Interner = field(default_factory=Interner)
    role: Interner = field(default_factory=Interner)
    """`layer/kind`."""
    track: Interner = field(default_factory=Interner)
    """`pid<TAB>tid` as the trace wrote them."""
    inputs: Interner = field(default_factory=Interner)
    """Shapes, dtypes, strides and values, joined by U+0001."""
    call_stack: Interner = field(default_factory=Interner)


class Spool:
    """Record batches written once and read once, in order, beyond what memory should hold."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, mode="w"), SPOOLED)

    def append(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches; ends the writing."""
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(pa.PythonFile(self._file, mode="r"))

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class EventBuffer:
    """Events of one file, appended in batches, then frozen into whole columns."""

    def __init__(self) -> None:
        self.names = Names()
        self.spool = Spool()
        self._parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in RESIDENT}
        self.rows = 0

    def append(self, resident: dict[str, npt.NDArray[Any]], spooled: pa.RecordBatch) -> None:
        for name, dtype in RESIDENT.items():
            self._parts[name].append(resident[name].astype(dtype, copy=False))
        self.spool.append(spooled)
        self.rows += spooled.num_rows

    def close(self) -> None:
        """Drop the spooled rows."""
        self.spool.close()

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Whole in-memory columns; hands them over, the buffer keeps none."""
        whole = {}
        for name, dtype in RESIDENT.items():
            parts = self._parts.pop(name)
            whole[name] = np.concatenate(parts) if parts else np.empty(0, dtype)
        return whole


@dataclass
class Events:
    """Frozen in-memory columns; what linking reads. Row number = place in the trace."""

    start: Ints
    duration: Ints
    correlation: Ints
    sequence: Ints
    external_id: Ints
    name: Codes
    role: npt.NDArray[np.int16]
    track: Codes
    inputs: Codes
    device: Codes
    stream: Codes
    call_stack: Codes
    backward: Bools
    names: Names

    @classmethod
    def freeze(cls, buffer: EventBuffer) -> Events:
        return cls(**buffer.columns(), names=buffer.names)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Ints:
        """Ends; an unknown duration counts as none here."""
        return self.start + np.where(self.duration == UNKNOWN, 0, self.duration)

    def roles(self, *wanted: str) -> Bools:
        """Rows whose `layer/kind` is one of `wanted`; `layer/` takes the whole layer."""
        texts = self.names.role.texts
        hit = [
            text in wanted or any(w.endswith("/") and text.startswith(w) for w in wanted)
            for text in texts
        ]
        return np.array([*hit, False], np.bool_)[self.role]

    def named(self, accept: Any) -> Bools:
        """Rows whose name is accepted by `accept(str)`, tried once a distinct name."""
        hit = [bool(accept(text)) for text in self.names.name.texts]
        return np.array([*hit, False], np.bool_)[self.name]
