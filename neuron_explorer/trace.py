"""Trace files opened for questions: documented views in an in-memory DuckDB.

Only Parquet is read and no DuckDB file is ever opened, so any number of readers may look at a
trace at once, whether or not something is writing the next one.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from neuron_explorer.database import Cursor, Database
from neuron_explorer.findings import Finding
from neuron_explorer.sandbox import DEFAULT_MEMORY_BYTES, QueryResult
from neuron_explorer.sandbox_process import Sandbox
from neuron_explorer.trace_facts import fact_tables
from neuron_explorer.trace_files import TraceFile, read_trace_files

_TRUSTED_MEMORY_BYTES = 2 * 1024**3


class Trace:
    """One trace of one or more ranks, ready for SQL. Safe to use from several threads."""

    def __init__(
        self, files: Sequence[TraceFile], device: str | None, *, raw: bool = False
    ) -> None:
        self._files = list(files)
        self.device_override = device
        self.raw = raw
        self.memory_limit_bytes = _TRUSTED_MEMORY_BYTES
        """Bound on DuckDB's memory; beyond it spills to disk. Counts until the first query."""
        self._facts = fact_tables(self._files, device)
        self._lock = threading.Lock()
        self._opened: Database | None = None
        self._sandbox = Sandbox(self.files, device, raw=raw)
        self._running: set[Callable[[], None]] = set()
        self._cleanups: list[weakref.finalize[..., Trace]] = []

    @classmethod
    def open(cls, paths: Sequence[Path], device: str | None = None, *, raw: bool = False) -> Trace:
        """Open the files of one trace.

        Args:
            paths: Parquet files, usually one a rank. Files that claim the same rank are
                renumbered by position; `import_issues` says so.
            device: Chip (name, or path of a chip file) to judge by; its figures count as
                modelled unless the trace was recorded on that very chip.
            raw: Show starts and durations as recorded where the import repaired them. Links
                stay as they were found with the repaired times.

        Raises:
            TraceError: A file is missing, not a trace, or of a newer schema.
            DeviceError: `device` names no chip.
        """
        return cls(read_trace_files(paths), device, raw=raw)

    @property
    def files(self) -> list[Path]:
        return [file.path for file in self._files]

    @property
    def metadata(self) -> Mapping[Path, Mapping[str, Any]]:
        """Decoded metadata of each file, by path; keys as in `schema.METADATA_KEYS`."""
        return {file.path: file.metadata for file in self._files}

    def sql(
        self,
        query: str,
        params: Mapping[str, object] | None = None,
        *,
        started: Callable[[Callable[[], None]], None] | None = None,
    ) -> pa.Table:
        """Run a query of this program's own; callable from any thread.

        Args:
            query: One SELECT over the views, with `$name` for parameters.
            params: A value for each parameter and no others.
            started: Hears, before the query runs, what to call from another thread to end it.

        Returns:
            The rows. Sums of integers are integers, although DuckDB's are 128 bits wide.

        Raises:
            duckdb.Error: The query does not run, or was ended.
            TraceError: A file of the trace is damaged.
        """
        with self._asking(query, started) as cursor:
            rows: pa.Table = cursor.sql(query, params=dict(params or {})).to_arrow_table()
        return _with_plain_integers(rows)

    def answer(
        self,
        query: str,
        params: Mapping[str, object] | None = None,
        *,
        started: Callable[[Callable[[], None]], None] | None = None,
    ) -> QueryResult:
        """The answer to such a query as Python values: of few rows, sooner than `sql` has them.

        DuckDB plans a query once for them and twice for an Arrow table, which for the widest
        views takes longer than the answer.

        Args:
            query: One SELECT over the views, with `$name` for parameters.
            params: A value for each parameter and no others.
            started: Hears, before the query runs, what to call from another thread to end it.

        Raises:
            duckdb.Error: The query does not run, or was ended.
            TraceError: A file of the trace is damaged.
        """
        with self._asking(query, started) as cursor:
            found = cursor.execute(query, dict(params or {})).fetchall()
            names = [each[0] for each in cursor.description or ()]
        return QueryResult(names, found, truncated=False)

    def rows(
        self,
        query: str,
        params: Mapping[str, object] | None = None,
        *,
        started: Callable[[Callable[[], None]], None] | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of such an answer by column; arguments and errors are those of `answer`."""
        found = self.answer(query, params, started=started)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def batches(
        self, query: str, params: Mapping[str, object] | None = None, *, rows: int = 1 << 15
    ) -> Iterator[pa.RecordBatch]:
        """The rows of such a query bit by bit, for results that memory should not hold.

        Args:
            query: One SELECT over the views, with `$name` for parameters.
            params: A value for each parameter and no others.
            rows: Most rows of a batch.

        Raises:
            duckdb.Error: The query does not run, or was ended.
            TraceError: A file of the trace is damaged.
        """
        with self._asking(query) as cursor:
            yield from cursor.sql(query, params=dict(params or {})).to_arrow_reader(rows)

    def query(
        self,
        text: str,
        *,
        limit: int | None = 10_000,
        timeout_s: float | None = 30,
        memory_limit_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> QueryResult:
        """Run a query of a user or an agent, who may read the views and do nothing else.

        Args:
            text: One SELECT, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN.
            limit: Most rows to return; None for all.
            timeout_s: Most seconds it may run; None for no bound.
            memory_limit_bytes: Most memory that it may use, in a process of its own.

        Raises:
            QueryError: The query is refused, does not run, or exceeds a bound.
        """
        return self._sandbox.query(
            text, limit=limit, timeout_s=timeout_s, memory_limit_bytes=memory_limit_bytes
        )

    def cancel_query(self) -> None:
        """End what `query` runs now, from another thread: it raises a QueryError."""
        self._sandbox.cancel()

    def findings(self) -> list[Finding]:
        """What the analyzers say, the most worthwhile first."""
        from neuron_explorer.analyzers.runner import run  # noqa: PLC0415 - analyzers read traces

        return run(self).findings

    def keep_alive(self, folder: tempfile.TemporaryDirectory[str]) -> None:
        """Remove `folder`, which holds files of this trace, once the trace is closed or gone."""
        self._cleanups.append(weakref.finalize(self, folder.cleanup))

    def end_queries(self) -> None:
        """Interrupt every query of this program's own that runs now, in whatever thread."""
        for end in list(self._running):
            end()
        if self._opened is not None:
            self._opened.end_filling()

    def close(self) -> None:
        """Free the memory; nothing can be asked afterwards."""
        self._sandbox.close()
        with self._lock:
            if self._opened is not None:
                self._opened.close()
        for cleanup in self._cleanups:
            cleanup()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _asking(
        self, query: str, started: Callable[[Callable[[], None]], None] | None = None
    ) -> Iterator[Cursor]:
        """A cursor for one query of this program's own, which may be ended from other threads."""
        database = self._database()
        with database.reading(), database.cursor_for(query) as cursor:
            end = partial(database.end_query, cursor)
            if started is not None:
                started(end)
            self._running.add(end)
            try:
                yield cursor
            finally:
                self._running.discard(end)

    def _database(self) -> Database:
        """Made on first use: whoever only wants the metadata does not wait for the views."""
        with self._lock:
            if self._opened is None:
                self._opened = Database(
                    self._files,
                    self._facts,
                    memory_limit_bytes=self.memory_limit_bytes,
                    spill_folder=_spill_folder(),
                    raw=self.raw,
                )
            return self._opened


def _with_plain_integers(rows: pa.Table) -> pa.Table:
    """Decimals without a fraction, which is what HUGEINT becomes in Arrow, as int64 if they fit."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                plain = rows.column(place).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            rows = rows.set_column(place, field.with_type(pa.int64()), plain)
    return rows


def _spill_folder() -> str:
    """DuckDB makes it when memory runs short and removes it on closing."""
    return str(Path(tempfile.gettempdir()) / f"neuron-explorer-{uuid.uuid4().hex}")
