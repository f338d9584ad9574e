"""An in-memory DuckDB instance that shows the files of a trace as the documented views."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from neuron_explorer.errors import TraceError
from neuron_explorer.schema import COLUMNS, type_name
from neuron_explorer.trace_files import TraceFile
from neuron_explorer.view_files import View, views, views_in

Cursor = duckdb.DuckDBPyConnection

# Python variables of the caller are no tables, and nothing of this program is a DuckDB file
# (a database file would be locked against every other reader while one writes).
# Without compressed_materialization: in DuckDB 2.0.1 a sum over a join with what is provably empty
# is silently cut to one byte once it is sorted (tests/test_trace.py).
# Every query reads the footer of each file, which no one writes to once it is a trace.
# GLOBAL: every query has a cursor of its own, which inherits nothing that is set for one alone.
_SETTINGS = """
SET GLOBAL python_enable_replacements = false;
SET GLOBAL TimeZone = 'UTC';
SET GLOBAL parquet_metadata_cache = true;
SET GLOBAL disabled_optimizers = 'compressed_materialization'
"""

# What a query brings upon itself, whatever the files hold.
_OF_THE_QUERY = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.InterruptException,
    duckdb.OutOfMemoryException,
)


class Database:
    """The views over some files; its tables are facts about them and views worth keeping."""

    def __init__(
        self,
        files: Sequence[TraceFile],
        facts: dict[str, pa.Table],
        *,
        memory_limit_bytes: int,
        spill_folder: str,
        raw: bool = False,
    ) -> None:
        """Name the files; views come with the first query that reads them.

        Args:
            files: Checked files of one trace.
            facts: Small tables by name; they become `raw.<name>`.
            memory_limit_bytes: Bound on DuckDB's own memory.
            spill_folder: Where larger intermediate results may go; empty forbids it.
            raw: Show times as they were recorded, whatever the import repaired.
        """
        self.files = list(files)
        self._connection = duckdb.connect()
        self._changed = threading.Condition()
        self._created: set[str] = set()
        """Views that are in the catalog, filled or not."""
        self._filling: dict[str, Cursor] = {}
        self._ready: set[str] = set()
        self._complete = False
        self._connection.execute(_SETTINGS)
        self._connection.execute(f"SET memory_limit = '{memory_limit_bytes} B'")
        self._connection.execute(f"SET temp_directory = {_literal(spill_folder)}")
        self._connection.execute("CREATE SCHEMA raw")
        for name, table in facts.items():
            self._copy_in(name, table)
        self._connection.execute(f"CREATE VIEW raw.events AS {_events_sql(self.files, raw=raw)}")

    def complete(self) -> None:
        """Create every view and say in the catalog what each and its columns mean."""
        if self._complete:
            return
        self._connection.execute("BEGIN")
        for view in views().values():
            if view.name not in self._created:
                self._create(view)
            self._connection.execute("; ".join(_comments(view)))
        self._connection.execute("COMMIT")
        self._complete = True

    def lock_down(self) -> None:
        """From here on no file but the trace's own is readable, and no setting changes."""
        paths = ", ".join(_literal(str(file.path.absolute())) for file in self.files)
        self._connection.execute(f"SET allowed_paths = [{paths}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def cursor_for(self, query: str) -> Cursor:
        """A cursor of the caller's own, the tables that `query` leans on being ready.

        Raises:
            TraceError: A file is damaged.
        """
        with self.reading():
            self._make_ready(views_in(query))
        with self._changed:
            return self._connection.cursor()

    def end_query(self, cursor: Cursor) -> None:
        """Interrupt what a cursor runs, from another thread; nothing happens where it is over."""
        with suppress(duckdb.ConnectionException):
            cursor.interrupt()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the damaged file, where that is why a query does not run.

        Raises:
            TraceError: A file is damaged.
        """
        try:
            yield
        except _OF_THE_QUERY:
            raise
        except duckdb.Error as error:
            for file in self.files:
                _check_readable(file.path, error)
            raise

    def end_filling(self) -> None:
        """Interrupt what fills tables, from another thread: they stay unfilled."""
        for cursor in list(self._filling.values()):
            self.end_query(cursor)

    def close(self) -> None:
        with self._changed:
            self._connection.close()

    def _create(self, view: View) -> None:
        # a table from the start, so that whatever reads it binds to a table and not to a query
        sort, end = ("TABLE", "WITH NO DATA") if view.materialize else ("VIEW", "")
        self._connection.execute(f"CREATE {sort} {view.name} AS {view.sql}\n{end}")
        self._created.add(view.name)

    def _make_ready(self, wanted: Sequence[View]) -> None:
        """Fill what is not ready; several threads share that, each taking what no other fills."""
        for view in iter(partial(self._next, wanted), None):
            try:
                self._fill(view)
            finally:
                with self._changed:
                    del self._filling[view.name]
                    self._changed.notify_all()

    def _next(self, wanted: Sequence[View]) -> View | None:
        """The next view to fill, once what it reads is ready; None when all are."""
        with self._changed:
            while unready := [view for view in wanted if view.name not in self._ready]:
                for view in unready:
                    if view.name not in self._filling and view.reads <= self._ready:
                        self._filling[view.name] = self._connection.cursor()
                        return view
                self._changed.wait()
        return None

    def _fill(self, view: View) -> None:
        start = "CREATE TABLE {} AS {}" if view.materialize else "CREATE VIEW {} AS {}"
        if view.name in self._created:
            start = "INSERT INTO {} {}" if view.materialize else ""
        if start:
            with self._filling[view.name] as cursor:
                # at once where it is not there yet: DuckDB plans such a query for longer than a
                # small trace takes to read
                cursor.execute(start.format(view.name, view.sql))
        self._created.add(view.name)
        self._ready.add(view.name)

    def _copy_in(self, name: str, table: pa.Table) -> None:
        # copied, not only registered: cursors do not see what is registered
        self._connection.register("incoming", table)
        self._connection.execute(f"CREATE TABLE raw.{name} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")


def _comments(view: View) -> list[str]:
    sort = "TABLE" if view.materialize else "VIEW"
    return [
        f"COMMENT ON {sort} {view.name} IS {_literal(view.doc)}",
        *(
            f"COMMENT ON COLUMN {view.name}.{column} IS {_literal(meaning)}"
            for column, meaning in view.columns.items()
        ),
    ]


def _events_sql(files: Sequence[TraceFile], *, raw: bool) -> str:
    """One scan where the files are alike; one a file where ranks move or columns differ."""
    alike = len({(file.columns, file.rank_shift) for file in files}) == 1
    groups = [list(files)] if alike else [[file] for file in files]
    return "\nUNION ALL\n".join(_scan_sql(group, raw=raw) for group in groups)


def _scan_sql(files: Sequence[TraceFile], *, raw: bool) -> str:
    present, shift = set(files[0].columns), files[0].rank_shift
    selected = []
    for column in COLUMNS:
        # a file of an older minor version lacks the columns added since
        value = column.name if column.name in present else "NULL"
        value = f"{value} + {shift}" if column.name == "rank" and shift else value
        recorded = f"raw_{column.name}"
        value = f"coalesce({recorded}, {value})" if raw and recorded in present else value
        selected.append(f"CAST({value} AS {type_name(column)}) AS {column.name}")
    paths = ", ".join(_literal(str(file.path.absolute())) for file in files)
    return f"SELECT {', '.join(selected)} FROM read_parquet([{paths}])"


def _check_readable(path: Path, error: duckdb.Error) -> None:
    """Read every column; only the footer was read when the trace was opened."""
    whole = f"SELECT count(COLUMNS(*)) FROM read_parquet({_literal(str(path.absolute()))})"
    try:
        with duckdb.connect() as reader:
            reader.execute(whole)
    except duckdb.Error as unreadable:
        raise TraceError(
            f"{path} is damaged: its footer can be read, its rows cannot",
            hint="copy, import or record the trace again",
        ) from error.with_traceback(unreadable.__traceback__)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
