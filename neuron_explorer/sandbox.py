"""What a query from outside may be, and running it under its bounds.

Four walls: the statement's syntax tree may hold nothing but SELECT and a short list of table
functions; it runs in a read-only transaction; its DuckDB instance has no file or network access
but the trace itself, with the configuration locked; and all of that lives in a process of its own
(`sandbox_process.py`), since DuckDB neither bounds nor interrupts every function.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa

from neuron_explorer.database import Database
from neuron_explorer.errors import QueryError
from neuron_explorer.trace_files import TraceFile

DEFAULT_MEMORY_BYTES = 1024**3

_ALLOWED = "SELECT, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN"
_FORM = "write one query, such as SELECT * FROM kernels"
_QUERY_NODES = frozenset(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"])

# An allow list: others read files, follow raw pointers, run text as SQL or change settings.
_TABLE_FUNCTIONS = frozenset(
    [
        "duckdb_columns",
        "duckdb_functions",
        "duckdb_tables",
        "duckdb_types",
        "duckdb_views",
        "generate_series",
        "json_each",
        "json_tree",
        "range",
        "unnest",
    ]
)
# Scalar functions compute; these few reach outside the query or only waste its time.
_SCALAR_REFUSED = frozenset(
    [
        "current_setting",
        "getenv",
        "getvariable",
        "json_deserialize_sql",
        "json_execute_serialized_sql",
        "nextval",
        "pg_sleep",
        "setseed",
        "setval",
        "sleep_ms",
        "write_log",
    ]
)
# The catalog describes the views, which is welcome; this view of it holds the configuration.
_TABLES_REFUSED = frozenset(["pg_settings"])

# Only such a query sees views that it does not name. By words: one too many costs a little time.
_OF_THE_CATALOG = re.compile(
    r"\b(?:describe|desc|show|summarize|information_schema|(?:duckdb|pg|sqlite)_\w+)\b",
    re.IGNORECASE,
)

_LONGEST = 200_000
"""Characters of a query: reading a longer one takes longer than any question is worth."""

_COMMENT = r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_EXPLAIN = re.compile(rf"{_COMMENT}EXPLAIN{_COMMENT}(?:ANALYZE\b)?", re.IGNORECASE | re.DOTALL)
_FETCH_ROWS = 2_048


class BoundExceededError(QueryError):
    """Stopped for its time or memory; the process may keep some of that memory for itself."""


@dataclass(frozen=True)
class QueryResult:
    """Rows of a query in its own order."""

    columns: list[str]
    rows: list[tuple[object, ...]]
    truncated: bool
    """Whether there were more rows than the limit."""


def open_locked(
    files: Sequence[TraceFile],
    facts: dict[str, pa.Table],
    memory_limit_bytes: int,
    *,
    raw: bool = False,
) -> Database:
    """A database that can read the trace and nothing else.

    Raises:
        QueryError: A file is damaged, or the memory does not even hold the facts about it.
    """
    try:
        database = Database(
            files, facts, memory_limit_bytes=memory_limit_bytes, spill_folder="", raw=raw
        )
        database.lock_down()
    except duckdb.Error as error:
        raise QueryError(f"the trace cannot be opened for queries: {_message(error)}") from error
    return database


def run_untrusted(
    database: Database, text: str, *, limit: int | None, timeout_s: float | None
) -> QueryResult:
    """Check and run `text` on a database that was locked down.

    Raises:
        QueryError: The query is refused, does not run, or exceeds a bound.
        TraceError: A file of the trace is damaged.
    """
    statement = check_statement(text)
    try:
        if _OF_THE_CATALOG.search(statement):
            database.complete()
        try:
            return _run(database, statement, limit, timeout_s)
        except duckdb.CatalogException:
            database.complete()  # so that DuckDB can say which name was meant
            return _run(database, statement, limit, timeout_s)
    except duckdb.InterruptException as error:
        raise took_too_long(timeout_s) from error
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise used_too_much() from error
    except (duckdb.Error, OverflowError, ValueError) as error:
        # the last two: a value that Python has no type for, such as the year -4000
        raise QueryError(f"query does not run: {_message(error)}", hint=_hint(error)) from error


def _run(
    database: Database, statement: str, limit: int | None, timeout_s: float | None
) -> QueryResult:
    with (
        database.reading(),
        database.cursor_for(statement) as cursor,
        _deadline(cursor, timeout_s),
    ):
        return _fetch(cursor, statement, limit)


def took_too_long(timeout_s: float | None) -> BoundExceededError:
    return BoundExceededError(
        f"query stopped after {timeout_s} s",
        hint="select fewer rows or columns, or raise the time limit",
    )


def used_too_much() -> BoundExceededError:
    return BoundExceededError(
        "query stopped: it needs more memory than it may use",
        hint="filter or aggregate earlier, or raise the memory limit",
    )


def check_statement(text: str) -> str:
    """The one statement in `text`.

    Raises:
        QueryError: There is none, more than one, or one that may do more than read the views.
    """
    if len(text) > _LONGEST:
        raise _refused(f"text of {len(text):,} characters")
    try:
        found = duckdb.extract_statements(text)
    except (duckdb.Error, UnicodeError) as error:
        raise QueryError(f"query cannot be parsed: {_message(error)}", hint=_FORM) from error
    if len(found) != 1:
        raise QueryError(f"query must be one statement, this is {len(found)}", hint=_FORM)
    kind, statement = _kind(found[0]), found[0].query
    if kind == duckdb.StatementType.EXPLAIN:
        _check_explained(statement)
    elif kind == duckdb.StatementType.SELECT:
        _check_tree(statement)
    else:
        raise _refused(f"{kind.name} statement" if kind else "such a statement")
    return statement


def _kind(statement: duckdb.Statement) -> duckdb.StatementType | None:
    """What sort it is; None for those that DuckDB knows and its Python module does not."""
    try:
        return statement.type
    except ValueError:
        return None


def _check_explained(statement: str) -> None:
    explained = _EXPLAIN.sub("", statement, count=1)
    try:
        inner = duckdb.extract_statements(explained)
    except duckdb.Error as error:
        raise _refused("EXPLAIN with options") from error
    if len(inner) != 1 or inner[0].type != duckdb.StatementType.SELECT:
        raise _refused("EXPLAIN of anything but a SELECT")
    _check_tree(explained)


def _check_tree(statement: str) -> None:
    with _parser().cursor() as parser:
        row = parser.execute("SELECT json_serialize_sql($1)", [statement]).fetchone()
    try:
        tree = json.loads(row[0]) if row else {"error": True}
    except RecursionError as error:
        raise _refused("query that is nested so deeply") from error
    if tree["error"]:
        raise _refused(str(tree.get("error_message", "statement that cannot be checked")))
    for node in _nodes(tree["statements"]):
        _check_node(node)


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """An empty database, which takes longer to make than most queries to run."""
    return duckdb.connect()


def _check_node(node: dict[str, object]) -> None:
    kind = str(node.get("type", ""))
    if kind.endswith("_NODE") and kind not in _QUERY_NODES:
        raise _refused(f"{kind.removesuffix('_QUERY_NODE')} inside a query")
    function = node.get("function")
    if kind == "TABLE_FUNCTION" and isinstance(function, dict):
        name = str(function.get("function_name", "")).lower()
        if name not in _TABLE_FUNCTIONS:
            raise _refused(f"table function {name}()")
    if str(node.get("function_name", "")).lower() in _SCALAR_REFUSED:
        raise _refused(f"function {node['function_name']}()")
    if kind == "BASE_TABLE" and str(node.get("table_name", "")).lower() in _TABLES_REFUSED:
        raise _refused(f"table {node['table_name']}")


def _nodes(tree: object) -> Iterator[dict[str, object]]:
    """Every JSON object at any depth, without recursion: a hostile tree may be deep."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _fetch(cursor: duckdb.DuckDBPyConnection, statement: str, limit: int | None) -> QueryResult:
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    cursor.execute(statement)
    columns = [str(column[0]) for column in cursor.description or []]
    rows: list[tuple[object, ...]] = []
    while limit is None or len(rows) <= limit:
        wanted = _FETCH_ROWS if limit is None else min(_FETCH_ROWS, limit + 1 - len(rows))
        chunk = cursor.fetchmany(wanted)
        rows.extend(chunk)
        if len(chunk) < wanted:
            break
    truncated = limit is not None and len(rows) > limit
    return QueryResult(columns, rows[:limit], truncated)


@contextmanager
def _deadline(cursor: duckdb.DuckDBPyConnection, timeout_s: float | None) -> Iterator[None]:
    if timeout_s is None:
        yield
        return
    timer = threading.Timer(timeout_s, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _refused(what: str) -> QueryError:
    return QueryError(
        f"query refused: {what} is not allowed", hint=f"queries may only read: use {_ALLOWED}"
    )


def _message(error: Exception) -> str:
    """DuckDB's own words up to its excerpt of the query, in one line."""
    return " ".join(str(error).partition("\n\nLINE ")[0].split())


def _hint(error: Exception) -> str:
    if isinstance(error, duckdb.CatalogException | duckdb.BinderException):
        return "`SHOW TABLES` lists the views, `DESCRIBE work` the columns of one"
    return ""
