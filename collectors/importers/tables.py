"""Normalised tables into the event buffer: codes, nanoseconds, roles, pairs and names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.collectors.attribution import Reported
from neuron_explorer.collectors.events import (
    CPU_DEVICE,
    SPOOLED,
    SURROGATE,
    UNKNOWN,
    Bools,
    EventBuffer,
    Ints,
)
from neuron_explorer.collectors.importers import categories
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.interning import NULL, Codes, Column, Interner

ITEM_BYTES = {
    **dict.fromkeys(("byte", "char", "bool", "int8", "uint8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16", "short"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("double", "long"), 8),
}
"""Bytes an element of the dtypes that c10d writes beside a collective."""

_PAIRED = frozenset("BEbeSF")
_FLOWS = frozenset("stf")
_SEPARATOR = "\t"


@dataclass(frozen=True)
class Mark:
    """One end of a slice that is written as two events."""

    row: int
    phase: str
    key: tuple[object, ...]


@dataclass
class Labels:
    """What metadata events say of processes and threads, by the trace's own ids."""

    process: dict[str, str] = field(default_factory=dict)
    thread: dict[tuple[str, str], str] = field(default_factory=dict)
    device: dict[str, str] = field(default_factory=dict)
    """`GPU 0`, by process id."""


class TableReader:
    """Appends normalised tables to a buffer and remembers what needs the whole file."""

    def __init__(self, buffer: EventBuffer, issues: IssueLog) -> None:
        self.buffer = buffer
        self.labels = Labels()
        self.marks: list[Mark] = []
        self.categories: set[str] = set()
        self.raw_duration: dict[int, int] = {}
        self.reported: list[Reported] = []
        self.issues = issues
        self._phases = Interner()
        self._roles: dict[int, int] = {}
        self._unknown: dict[int, str] = {}
        self._correlations = Interner()

    @property
    def rows(self) -> int:
        return self.buffer.rows

    def close(self) -> None:
        """Drop what was read."""
        self.buffer.close()

    def append(self, table: pa.Table) -> None:
        names = self.buffer.names
        phase = self._phases.codes(table["ph"])
        category = names.category.codes(table["cat"])
        name = names.name.codes(table["name"])
        track = self._tracks(table)
        role_codes = self._role_codes(table, phase, category, name)
        start, duration = nanoseconds(table["ts"]), nanoseconds(table["dur"])
        self._read_labels(table, phase)
        self._read_marks(table, phase, track, name)
        self._read_bytes(table)
        correlation = self._correlation(table)
        forward_thread = integers(table["forward_thread"], 0)
        dense: dict[str, npt.NDArray[Any]] = {
            "start": start,
            "duration": self._checked_duration(duration),
            "name": name,
            "role": self._checked_roles(role_codes, start, phase),
            "track": track,
            "inputs": names.inputs.codes(table["inputs"]),
            "backward": forward_thread > 0,
        }
        flow = np.array([text in _FLOWS for text in self._phases.texts], np.bool_)[phase]
        sparse: dict[str, npt.NDArray[Any]] = {
            "correlation": np.where(flow, UNKNOWN, correlation),
            "sequence": integers(table["sequence"]),
            "forward_thread": np.where(forward_thread > 0, forward_thread, UNKNOWN),
            "external_id": integers(table["external_id"]),
            "device": _devices(table),
            "stream": integers(table["stream"]),
            "call_stack": _unknown_codes(names.call_stack.codes(table["call_stack"])),
            "flow": np.where(flow & self._launch_flows(category), correlation, UNKNOWN),
        }
        self.buffer.append(dense, sparse, _spooled(table, category, correlation))

    def _launch_flows(self, category: Codes) -> Bools:
        texts = self.buffer.names.category.texts
        hit = [text.lower() in categories.LAUNCH_FLOWS for text in texts]
        return np.array([*hit, False], np.bool_)[category]

    def _tracks(self, table: pa.Table) -> Codes:
        pid, tid = Interner(), Interner()
        pids, tids = pid.codes(table["pid"]), tid.codes(table["tid"])
        pairs, places = np.unique(pids.astype(np.int64) * len(tid) + tids, return_inverse=True)
        pid_texts, tid_texts = pid.texts, tid.texts
        codes = [
            self.buffer.names.track.code(
                pid_texts[pair // len(tid)] + _SEPARATOR + tid_texts[pair % len(tid)]
            )
            for pair in pairs.tolist()
        ]
        return np.array(codes, np.int32)[places]

    def _role_codes(self, table: pa.Table, phase: Codes, category: Codes, name: Codes) -> Codes:
        keys = ((phase.astype(np.int64) << 20 | (category + 1)) << 32) | (name + 1)
        distinct, first, places = np.unique(keys, return_index=True, return_inverse=True)
        codes = [
            self._roles[key] if key in self._roles else self._new_role(key, table, row)
            for key, row in zip(distinct.tolist(), first.tolist(), strict=True)
        ]
        self._report_unknown(distinct, places)
        found = np.array(codes, np.int32)[places]
        freed = integers(table["alloc_bytes"], 0) < 0
        alloc, free = (self.buffer.names.role.code(f"memory/{kind}") for kind in ("alloc", "free"))
        return np.where(freed & (found == alloc), free, found).astype(np.int32)

    def _new_role(self, key: int, table: pa.Table, row: int) -> int:
        phase, category, name, pid = (table[c][row].as_py() for c in ("ph", "cat", "name", "pid"))
        if category:
            self.categories.add(category.lower())
        if category and not categories.is_known(phase, category):
            self._unknown[key] = category
        self._roles[key] = self.buffer.names.role.code(
            "/".join(categories.role(phase, category, name, pid))
        )
        return self._roles[key]

    def _report_unknown(self, distinct: Ints, places: Ints) -> None:
        if self._unknown.keys().isdisjoint(distinct.tolist()):
            return
        counts = np.bincount(places, minlength=len(distinct))
        for key, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            if key in self._unknown:
                self.issues.add("unknown_category", example=self._unknown[key], count=count)

    def _checked_roles(self, roles: Codes, start: Ints, phase: Codes) -> Codes:
        """An event without a usable time is kept, but never in the timeline."""
        metadata = self.buffer.names.role.code("meta/metadata")
        lost = (start == UNKNOWN) & (roles != metadata)
        if lost.any():
            self.issues.add(
                "no_usable_time",
                example=self._phases.texts[phase[lost][0]],
                count=int(lost.sum()),
            )
        unreadable = self.buffer.names.role.code("meta/unreadable")
        return np.where(lost, unreadable, roles).astype(np.int32)

    def _checked_duration(self, duration: Ints) -> Ints:
        negative = (duration < 0) & (duration != UNKNOWN)
        if not negative.any():
            return duration
        rows = np.flatnonzero(negative)
        self.raw_duration |= {self.buffer.rows + int(row): int(duration[row]) for row in rows}
        self.issues.add(
            "negative_duration",
            example=str(duration[rows[0]]),
            count=len(rows),
        )
        return np.where(negative, UNKNOWN, duration)

    def _correlation(self, table: pa.Table) -> Ints:
        found = integers(table["correlation"])
        unfit: Column = pc.is_valid(table["correlation_text"])
        wide = unfit.to_numpy() & (found == UNKNOWN)
        if wide.any():
            texts: Column = table["correlation_text"].filter(pa.array(wide))
            found[wide] = SURROGATE - self._correlations.codes(texts).astype(np.int64)
        return found

    def _read_labels(self, table: pa.Table, phase: Codes) -> None:
        rows = np.flatnonzero(phase == self._phases.code("M"))
        columns = table.select(["name", "pid", "tid", "label", "labels"])
        for row in columns.take(rows).to_pylist():
            if row["name"] == "process_name" and row["label"]:
                self.labels.process[row["pid"]] = row["label"]
            if row["name"] == "process_labels" and row["labels"]:
                self.labels.device[row["pid"]] = row["labels"]
            if row["name"] == "thread_name" and row["label"]:
                self.labels.thread[row["pid"], row["tid"]] = row["label"]

    def _read_marks(self, table: pa.Table, phase: Codes, track: Codes, name: Codes) -> None:
        paired = np.array([text in _PAIRED for text in self._phases.texts], np.bool_)[phase]
        for row in np.flatnonzero(paired).tolist():
            letter = self._phases.texts[phase[row]]
            key: tuple[object, ...] = (int(track[row]),)
            if letter in "beSF":
                pid = table["pid"][row].as_py()
                key = (pid, table["cat"][row].as_py(), table["id"][row].as_py(), int(name[row]))
            self.marks.append(Mark(self.buffer.rows + row, letter, key))

    def _read_bytes(self, table: pa.Table) -> None:
        """Bytes the trace states itself: of a copy, and of a collective's messages."""
        size = _item_sizes(table["message_dtype"])
        message_in = pc.multiply(table["message_in"], size)
        message_out = pc.multiply(table["message_out"], size)
        read, write = (
            pc.coalesce(table["bytes"], message) for message in (message_in, message_out)
        )
        rows = np.flatnonzero(pc.or_(pc.is_valid(read), pc.is_valid(write)).to_numpy())
        if len(rows):
            flops = np.full(len(rows), UNKNOWN, np.int64)
            self.reported.append(
                (rows + self.buffer.rows, flops, integers(read)[rows], integers(write)[rows])
            )

    def reported_costs(self) -> Reported:
        """Rows, and the FLOPs and bytes that the trace states of each (UNKNOWN where not)."""
        empty = np.empty(0, np.int64)
        parts = self.reported or [(empty, empty, empty, empty)]
        rows, flops, read, write = (np.concatenate(column) for column in zip(*parts, strict=True))
        return rows, flops, read, write


def nanoseconds(column: Column) -> Ints:
    """Decimal microseconds with three places as int64 ns; UNKNOWN for nulls and absurd ones."""
    array: Column = column.combine_chunks()
    if not len(array):
        return np.empty(0, np.int64)
    # a decimal128 is an integer of thousandths in two little-endian words
    words = np.frombuffer(array.buffers()[1], np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    # within 2**62, so that sums and differences of two times fit too: till the year 2116
    fits = (words[:, 0] >> 62) == words[:, 1]
    valid: Column = pc.is_valid(array)
    return np.where(valid.to_numpy(zero_copy_only=False) & fits, words[:, 0], UNKNOWN)


def integers(column: Column, missing: int = UNKNOWN) -> Ints:
    """An integer column as int64 with `missing` for nulls; a fresh array."""
    filled: Column = pc.fill_null(column.cast(pa.int64()), pa.scalar(missing, pa.int64()))
    values: Ints = filled.to_numpy().copy()
    return values


def _item_sizes(dtype: Column) -> Column:
    lowered = pc.utf8_lower(dtype)
    names = pa.array(list(ITEM_BYTES), pa.string())
    sizes: Column = pa.array(list(ITEM_BYTES.values()), pa.int64())
    return pc.take(sizes, pc.index_in(lowered, names))


def _devices(table: pa.Table) -> Ints:
    of_memory = integers(table["device_id"])
    kind = integers(table["device_type"])
    of_memory = np.where(kind == 0, CPU_DEVICE, of_memory)
    return np.where(kind == UNKNOWN, integers(table["device"]), of_memory)


def _unknown_codes(codes: Codes) -> Ints:
    return np.where(codes == NULL, UNKNOWN, codes.astype(np.int64))


def _spooled(table: pa.Table, category: Codes, correlation: Ints) -> pa.RecordBatch:
    recorded = (correlation == UNKNOWN) | (correlation <= SURROGATE)
    columns: dict[str, Column] = {
        "category": pa.array(category, pa.int32(), mask=category < 0),
        "correlation": pa.array(correlation, pa.int64(), mask=recorded),
    }
    for name in SPOOLED.names:
        if name not in columns and name in table.column_names:
            columns[name] = table[name].combine_chunks()
        elif name not in columns:  # what only a capture's own rows have
            columns[name] = pa.nulls(table.num_rows, SPOOLED.field(name).type)
    return pa.record_batch([columns[name] for name in SPOOLED.names], schema=SPOOLED)


def pair_marks(reader: TableReader, start: Ints, duration: Ints) -> Bools:
    """Close B/E and async pairs in place; returns which rows stay rows of their own.

    An end becomes the duration of its begin and is no row; a begin without an end keeps
    an unknown duration; an end without a begin stays, as an instant of unknown duration.
    """
    keep = np.ones(len(start), np.bool_)
    open_marks: dict[tuple[object, ...], list[int]] = {}
    ordered = sorted(reader.marks, key=lambda mark: (start[mark.row], mark.row))
    unmatched = 0
    for mark in ordered:
        waiting = open_marks.setdefault(mark.key, [])
        if start[mark.row] == UNKNOWN:
            continue
        if mark.phase in "BbS":
            waiting.append(mark.row)
        elif waiting:
            begin = waiting.pop()
            duration[begin] = start[mark.row] - start[begin]
            keep[mark.row] = False
        else:
            unmatched += 1
    _report_pairs(reader, sum(map(len, open_marks.values())), unmatched)
    return keep


def _report_pairs(reader: TableReader, unclosed: int, unmatched: int) -> None:
    for kind, count in (("unclosed_slice", unclosed), ("unopened_slice", unmatched)):
        if count:
            reader.issues.add(kind, count=count)


def process_role(label: str | None) -> tuple[str, str]:
    """Role of uncategorised slices in a process of this name."""
    return categories.PROCESSES.get((label or "").lower(), categories.UNKNOWN)


def spread(values: dict[int, int], rows: int) -> npt.NDArray[np.int64]:
    """Sparse values by row as a column, UNKNOWN elsewhere."""
    column = np.full(rows, UNKNOWN, np.int64)
    if values:
        column[np.fromiter(values, np.int64, len(values))] = list(values.values())
    return column
