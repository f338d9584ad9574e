"""The columnar buffer between whoever makes events and the linking and writing after it.

What linking needs of every event stays in memory as NumPy columns (about 30 bytes an
event, and 12 more for each id that few events have); the rest waits in a temporary file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.collectors.interning import NULL, Codes, Interner
from neuron_explorer.errors import OutputError

if TYPE_CHECKING:
    from neuron_explorer.collectors.linking.frames import Frame

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNKNOWN = np.iinfo(np.int64).min
"""Marks an unknown time, duration or id in the in-memory columns."""

SURROGATE = -(1 << 62)
"""Correlation ids beyond int64 stand here as codes from this number down: links need equality
only, and the exact text stays in the attributes."""

DENSE: dict[str, Any] = {
    "start": np.int64,
    "duration": np.int64,
    "name": np.int32,
    "role": np.int16,
    "track": np.int32,
    "inputs": np.int32,
    "backward": np.bool_,
}
"""In-memory columns of every event: ns relative to the trace's base, codes of the interners."""

SPARSE = (
    "correlation",
    "sequence",
    "forward_thread",
    "external_id",
    "device",
    "stream",
    "call_stack",
    "flow",
)
"""In-memory columns that most events lack."""

RECORDED_TEXTS = (
    "module_class",
    "graph_id",
    "reason",
    "stack",
    "device_name",
    "queue",
    "queue_kind",
)
"""Texts that only a capture's own rows bring along, as columns of the event table."""

_SPOOLED: dict[str, Any] = {
    "category": pa.int32(),
    "correlation": pa.int64(),
    "external_id": pa.int64(),
    "sequence": pa.int64(),
    "forward_thread": pa.int64(),
    "alloc_bytes": pa.int64(),
    "device_allocated": pa.int64(),
    "device_reserved": pa.int64(),
    "modelled_start_ns": pa.int64(),
    "modelled_duration_ns": pa.int64(),
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
    recorded: dict[str, Interner] = field(
        default_factory=lambda: {name: Interner() for name in RECORDED_TEXTS}
    )
    """One for each of `RECORDED_TEXTS`."""


@dataclass(frozen=True)
class Sparse:
    """Values of the few rows that have one, in row order."""

    rows: Codes
    values: Ints

    @classmethod
    def joined(cls, parts: list[tuple[Codes, Ints]]) -> Sparse:
        if not parts:
            return cls(np.empty(0, np.int32), np.empty(0, np.int64))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def of(self, rows: npt.NDArray[np.integer], missing: int = UNKNOWN) -> Ints:
        """Values of the given rows; `missing` where a row has none."""
        if not len(self.rows):
            return np.full(len(rows), missing, np.int64)
        place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[place] == rows, self.values[place], missing)

    def where(self, chosen: Bools) -> Sparse:
        """Only the rows that are chosen in a column of all rows."""
        keep = chosen[self.rows]
        return Sparse(self.rows[keep], self.values[keep])


class Spool:
    """Record batches written once and read once, in order, beyond what memory should hold."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, mode="w"), SPOOLED)

    def append(self, batch: pa.RecordBatch) -> None:
        with _writing():
            self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All batches; ends the writing."""
        with _writing():
            self._writer.close()
            self._file.seek(0)
        yield from pa.ipc.open_stream(pa.PythonFile(self._file, mode="r"))

    def close(self) -> None:
        # what is still to be written is not wanted, and the disk may be full
        with suppress(OSError):
            self._file.close()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot write to the temporary folder {tempfile.gettempdir()}: {error}",
            hint="set TMPDIR to a folder with more room",
        ) from error


class EventBuffer:
    """Events of one file, appended in batches, then frozen into whole columns."""

    def __init__(self) -> None:
        self.names = Names()
        self.spool = Spool()
        self.rows = 0
        self._dense: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in DENSE}
        self._sparse: dict[str, list[tuple[Codes, Ints]]] = {
            name: [] for name in (*SPARSE, *RECORDED_TEXTS)
        }

    def append(
        self,
        dense: dict[str, npt.NDArray[Any]],
        sparse: dict[str, npt.NDArray[Any]],
        spooled: pa.RecordBatch,
    ) -> None:
        """Add a batch; `sparse` columns are whole, UNKNOWN where a row has no value."""
        for name, dtype in DENSE.items():
            self._dense[name].append(dense[name].astype(dtype, copy=False))
        for name, column in sparse.items():
            rows = np.flatnonzero(column != UNKNOWN)
            if len(rows):
                values = column[rows].astype(np.int64)
                self._sparse[name].append(((rows + self.rows).astype(np.int32), values))
        self.spool.append(spooled)
        self.rows += spooled.num_rows

    def starts_of(self, name: str) -> Ints:
        """Starts of the rows of a name, while rows may still be added."""
        code = self.names.name.code(name)
        pairs = zip(self._dense["start"], self._dense["name"], strict=True)
        found = [start[names == code] for start, names in pairs]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def names_of(self, role: str) -> set[str]:
        """Names of the rows of a role, while rows may still be added."""
        code = self.names.role.code(role)
        pairs = zip(self._dense["role"], self._dense["name"], strict=True)
        codes = {each for role, names in pairs for each in np.unique(names[role == code]).tolist()}
        return {self.names.name.texts[each] for each in codes if each != NULL}

    def close(self) -> None:
        """Drop the spooled rows."""
        self.spool.close()

    def freeze(self) -> Events:
        """Whole columns; hands them over, the buffer keeps only the spool and the names."""
        columns: dict[str, Any] = {}
        for name, dtype in DENSE.items():
            parts = self._dense.pop(name)
            columns[name] = np.concatenate(parts) if parts else np.empty(0, dtype)
        for name in SPARSE:
            columns[name] = Sparse.joined(self._sparse.pop(name))
        recorded = {name: Sparse.joined(self._sparse.pop(name)) for name in RECORDED_TEXTS}
        return Events(**columns, names=self.names, recorded=recorded)


@dataclass(frozen=True)
class Running:
    """Model line that ran when an event began, of the rows for which a capture knows it."""

    rows: Codes
    """In order."""
    place: Codes
    """Number of the place that ran."""
    entered: Ints
    """When its frame began or was last resumed, as the events' times."""
    callers: Sequence[int]
    """Place that called each place; below zero where no model code did. Callers come first."""
    frames: Sequence[Frame]
    """Frame of each place, at its line."""


@dataclass
class Events:
    """Frozen in-memory columns; what linking reads. Row number = place in the trace."""

    start: Ints
    duration: Ints
    name: Codes
    role: npt.NDArray[np.int16]
    track: Codes
    inputs: Codes
    backward: Bools
    correlation: Sparse
    sequence: Sparse
    forward_thread: Sparse
    """torch's number of the thread of its forward, of backward rows."""
    external_id: Sparse
    device: Sparse
    stream: Sparse
    call_stack: Sparse
    flow: Sparse
    """Ids of flows that lead from the host to hardware work."""
    names: Names
    recorded: dict[str, Sparse] = field(
        default_factory=lambda: {name: Sparse.joined([]) for name in RECORDED_TEXTS}
    )
    """Codes into `names.recorded`, by the name of the column."""
    call_line: Sparse = field(default_factory=lambda: Sparse.joined([]))
    """Line from which each Python frame was called, where known."""
    running: Running | None = None
    """None where no lines were recorded."""

    def __len__(self) -> int:
        return len(self.start)

    def end(self, rows: npt.NDArray[Any]) -> Ints:
        """Ends of the given rows; an unknown duration counts as none here."""
        duration = self.duration[rows]
        ends: Ints = self.start[rows] + np.where(duration == UNKNOWN, 0, duration)
        return ends

    def forget_ids(self) -> None:
        """Free what is read no more once launches are found."""
        none = Sparse.joined([])
        self.correlation = self.external_id = self.device = self.stream = none
        self.forward_thread = none

    def roles(self, *wanted: str) -> Bools:
        """Rows whose `layer/kind` is one of `wanted`; `layer/` takes the whole layer."""
        layers = tuple(text for text in wanted if text.endswith("/"))
        hit = [text in wanted or text.startswith(layers) for text in self.names.role.texts]
        return np.array([*hit, False], np.bool_)[self.role]

    def named(self, accept: Callable[[str], object]) -> Bools:
        """Rows whose name is accepted; each distinct name is tried once."""
        hit = [bool(accept(text)) for text in self.names.name.texts]
        found: Bools = np.array([*hit, False], np.bool_)[self.name]
        return found

    def recorded_texts(self, column: str) -> dict[int, str]:
        """Text by row, of one of `RECORDED_TEXTS`."""
        sparse, texts = self.recorded[column], self.names.recorded[column].texts
        pairs = zip(sparse.rows.tolist(), sparse.values.tolist(), strict=True)
        return {row: texts[code] for row, code in pairs}


@dataclass(frozen=True)
class Places:
    """Device and stream of the rows that have one, in row order."""

    rows: Codes
    device: Codes
    """Number of the device, `CPU_DEVICE`, or NULL."""
    stream: Codes


CPU_DEVICE = -2
RECORDED_DEVICE = -16
"""Devices that a capture names itself count down from here, by code of their name."""
RECORDED_STREAM = 1 << 30
"""Their queues count up from here."""

__all__ = [
    "CPU_DEVICE",
    "NULL",
    "RECORDED_DEVICE",
    "RECORDED_STREAM",
    "RECORDED_TEXTS",
    "SPOOLED",
    "SURROGATE",
    "UNKNOWN",
    "Bools",
    "EventBuffer",
    "Events",
    "Ints",
    "Names",
    "Places",
    "Running",
    "Sparse",
    "Spool",
]
