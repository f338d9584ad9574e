"""Documents of Chrome trace events -> one Arrow table of plain columns, in DuckDB.

A document is the text `[{event},{event},...]`, about one MiB. DuckDB parses it in C++ on
all cores, exact decimals included; what a document holds beyond the columns below stays
as JSON text in `attributes`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import duckdb
import pyarrow as pa

ARGUMENTS: dict[str, str] = {
    "External id": "VARCHAR",
    "correlation": "VARCHAR",
    "device": "VARCHAR",
    "stream": "VARCHAR",
    "Sequence number": "VARCHAR",
    "Fwd thread id": "VARCHAR",
    "Input Dims": "VARCHAR",
    "Input type": "VARCHAR",
    "Input Strides": "VARCHAR",
    "Concrete Inputs": "VARCHAR",
    "Python module id": "VARCHAR",
    "Python id": "VARCHAR",
    "Python parent id": "VARCHAR",
    "Ev Idx": "VARCHAR",
    "Record function id": "VARCHAR",
    "Profiler Event Index": "VARCHAR",
    "cbid": "VARCHAR",
    "cid": "VARCHAR",
}
"""The args of nearly every event. From `Python module id` on they only number what row order,
`parent_id` and `name` say as well, so they are not kept."""

LEFTOVERS: tuple[str, ...] = (
    "external id",
    "Input dims",
    "Call stack",
    "Bytes",
    "Total Allocated",
    "Total Reserved",
    "Device Type",
    "Device Id",
    "bytes",
    "size",
    "name",
    "labels",
    "In msg nelems",
    "Out msg nelems",
    "dtype",
)
"""Args of the rarer events, read only where an event has more than `ARGUMENTS`."""

_DROPPED = ("external id", "Input dims", "Call stack", "Bytes", "Total Allocated", "Total Reserved")
_EVENT = {
    "ph": "VARCHAR",
    "cat": "VARCHAR",
    "name": "VARCHAR",
    "pid": "VARCHAR",
    "tid": "VARCHAR",
    "ts": "DECIMAL(24,3)",
    "dur": "DECIMAL(24,3)",
    "id": "VARCHAR",
    "args": "JSON",
}


_NUMBERS: dict[str, tuple[str, str]] = {
    "correlation": ("correlation_text", "BIGINT"),
    "external_id": ("external_text", "BIGINT"),
    "device": ("a.device", "INTEGER"),
    "stream": ("a.stream", "BIGINT"),
    "sequence": ('a."Sequence number"', "BIGINT"),
    "forward_thread": ('a."Fwd thread id"', "BIGINT"),
}
"""Column -> its text and type; where the text does not fit the type it goes to the attributes."""


def _extra(key: str) -> str:
    """Text of one of `LEFTOVERS`."""
    return f"extra[{LEFTOVERS.index(key) + 1}]"


def _whole(key: str) -> str:
    return f"try_cast({_extra(key)} AS BIGINT)"


def _of_device(key: str) -> str:
    """An allocator's total; NULL on the CPU (device type 0).

    There torch counts what was taken while it profiled, also what was given back while it did
    not, and writes 0 as reserved: that is no total of anything.
    """
    return f"CASE WHEN {_whole('Device Type')} IS DISTINCT FROM 0 THEN {_whole(key)} END"


_DIMS = f"""coalesce(a."Input Dims", {_extra("Input dims")})"""
COLUMNS: dict[str, str] = {
    "ph": "coalesce(ph, '')",
    "cat": "cat",
    "name": "name",
    "pid": "coalesce(pid, '')",
    "tid": "coalesce(tid, '')",
    "ts": "ts",
    "dur": "dur",
    "id": "id",
    "correlation_text": "coalesce(a.correlation, CASE WHEN ph IN ('s', 't', 'f') THEN id END)",
    "external_text": f"""coalesce(a."External id", {_extra("external id")})""",
    **{name: f"try_cast({text} AS {kind})" for name, (text, kind) in _NUMBERS.items()},
    "inputs": f"""CASE WHEN {_DIMS} IS NOT NULL OR a."Input type" IS NOT NULL THEN
        concat_ws(chr(1), coalesce({_DIMS}, ''), coalesce(a."Input type", ''),
        coalesce(a."Input Strides", ''), coalesce(a."Concrete Inputs", '')) END""",
    "call_stack": _extra("Call stack"),
    "alloc_bytes": _whole("Bytes"),
    "device_allocated": _of_device("Total Allocated"),
    "device_reserved": _of_device("Total Reserved"),
    "device_type": _whole("Device Type"),
    "device_id": _whole("Device Id"),
    "bytes": f"coalesce({_whole('bytes')}, {_whole('size')})",
    "label": _extra("name"),
    "labels": _extra("labels"),
    "message_in": _whole("In msg nelems"),
    "message_out": _whole("Out msg nelems"),
    "message_dtype": _extra("dtype"),
}
"""Columns of the normalised table, as expressions over one event and its args `a`."""


def _literal(value: object) -> str:
    return "'" + json.dumps(value).replace("'", "''") + "'"


def _attributes() -> str:
    """Args without a column, and the text of numbers that do not fit theirs."""
    unfit = {
        name: f"({text} IS NOT NULL AND try_cast({text} AS {kind}) IS NULL)"
        for name, (text, kind) in _NUMBERS.items()
    }
    kept = ", ".join(
        f"'{name}', CASE WHEN {unfit[name]} THEN {text} END" for name, (text, _) in _NUMBERS.items()
    )
    return f"""CASE WHEN {" OR ".join(unfit.values())}
        THEN json_merge_patch(coalesce(leftover, '{{}}'), json_object({kept}))::VARCHAR
        ELSE nullif(leftover, '{{}}') END"""


def _events(*, keep_all: bool) -> str:
    """Events of the documents; `beside` holds their own keys that have no column."""
    parsed = f"unnest(json_transform(doc, {_literal([_EVENT])})) AS e"
    beside = "NULL::VARCHAR"
    if keep_all:
        # as JSON as well as by column: JSON keeps every key, only the column every digit
        parsed += """, unnest(json_transform(doc, '["JSON"]')) AS whole"""
        patch = _literal(dict.fromkeys(_EVENT))
        beside = f"nullif(json_merge_patch(whole, {patch})::VARCHAR, '{{}}')"
    return f"""parsed AS (SELECT {parsed} FROM documents),
        events AS (SELECT unnest(e), {beside} AS beside FROM parsed WHERE e IS NOT NULL)"""


def _query(*, keep_all: bool) -> str:
    known = " + ".join(f'(a."{key}" IS NOT NULL)::INTEGER' for key in ARGUMENTS)
    patch = _literal(dict.fromkeys((*ARGUMENTS, *_DROPPED)))
    paths = "[" + ", ".join(f"'$.\"{key}\"'" for key in LEFTOVERS) + "]"
    columns = {**COLUMNS, "attributes": _attributes()}
    return f"""
        WITH {_events(keep_all=keep_all)},
        typed AS (SELECT *, json_transform(args, {_literal(ARGUMENTS)}) AS a FROM events),
        counted AS (SELECT *, len(json_keys(args)) > {known} AS more FROM typed),
        split AS (SELECT *,
            CASE WHEN more THEN json_extract_string(args, {paths}) END AS extra,
            CASE WHEN more AND beside IS NOT NULL
                THEN json_merge_patch(beside, json_merge_patch(args, {patch}))::VARCHAR
                WHEN more THEN json_merge_patch(args, {patch})::VARCHAR
                ELSE beside END AS leftover
            FROM counted)
        SELECT {", ".join(f'{value} AS "{name}"' for name, value in columns.items())} FROM split
    """


_MALFORMED = (duckdb.InvalidInputException, duckdb.ConversionException)


class Normaliser:
    """One DuckDB connection that turns documents into Arrow tables."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET preserve_insertion_order = true")
        self._query = _query(keep_all=True)

    def expect_kineto(self) -> None:
        """Read only the keys Kineto writes beside an event's args, which all have a column."""
        self._query = _query(keep_all=False)

    def table(self, documents: Sequence[bytes]) -> pa.Table | None:
        """Columns of all events of the documents, in order; None where one is malformed."""
        try:
            # a batch each: DuckDB's threads take batches, and keep their order
            batches = [
                pa.record_batch({"doc": pa.array([document], pa.string())})
                for document in documents
            ]
        except pa.ArrowInvalid:  # bytes that are not UTF-8
            return None
        self._connection.register("documents", pa.Table.from_batches(batches))
        try:
            table: pa.Table = self._connection.sql(self._query).to_arrow_table()
        except (*_MALFORMED, UnicodeDecodeError):
            # the latter: what DuckDB quotes of the document in its message ends inside a character
            return None
        finally:
            self._connection.unregister("documents")
        return table

    def close(self) -> None:
        self._connection.close()
