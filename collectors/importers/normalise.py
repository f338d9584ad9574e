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


def _literal(value: object) -> str:
    return "'" + json.dumps(value).replace("'", "''") + "'"


def _query() -> str:
    # (column, its text, type): where the text fits the type no more it goes to the attributes
    numbers = [
        ("correlation", "correlation_text", "BIGINT"),
        ("external_id", 'a."External id"', "BIGINT"),
        ("device", "a.device", "INTEGER"),
        ("stream", "a.stream", "BIGINT"),
        ("sequence", 'a."Sequence number"', "BIGINT"),
        ("forward_thread", 'a."Fwd thread id"', "BIGINT"),
    ]
    unfit = {c: f"{text} IS NOT NULL AND try_cast({text} AS {t}) IS NULL" for c, text, t in numbers}
    kept = ", ".join(f"'{c}', CASE WHEN {unfit[c]} THEN {text} END" for c, text, _ in numbers)
    known = " + ".join(f'(a."{key}" IS NOT NULL)::INTEGER' for key in ARGUMENTS)
    patch = _literal(dict.fromkeys((*ARGUMENTS, *_DROPPED)))
    paths = "[" + ", ".join(f"'$.\"{key}\"'" for key in LEFTOVERS) + "]"
    extra = {key: f"extra[{place}]" for place, key in enumerate(LEFTOVERS, 1)}
    columns = {
        "ph": "coalesce(ph, '')",
        "cat": "cat",
        "name": "name",
        "pid": "coalesce(pid, '')",
        "tid": "coalesce(tid, '')",
        "ts": "ts",
        "dur": "dur",
        "id": "id",
        "correlation_text": "coalesce(a.correlation, CASE WHEN ph IN ('s', 't', 'f') THEN id END)",
        **{column: f"try_cast({text} AS {sql_type})" for column, text, sql_type in numbers},
        "external_id": f"""try_cast(
            coalesce(a."External id", {extra["external id"]}) AS BIGINT)""",
        "inputs": f"""CASE WHEN coalesce(a."Input Dims", {extra["Input dims"]}) IS NOT NULL
            OR a."Input type" IS NOT NULL THEN concat_ws(chr(1),
            coalesce(a."Input Dims", {extra["Input dims"]}, ''), coalesce(a."Input type", ''),
            coalesce(a."Input Strides", ''), coalesce(a."Concrete Inputs", '')) END""",
        "call_stack": extra["Call stack"],
        "alloc_bytes": f"try_cast({extra['Bytes']} AS BIGINT)",
        "device_allocated": f"try_cast({extra['Total Allocated']} AS BIGINT)",
        "device_reserved": f"try_cast({extra['Total Reserved']} AS BIGINT)",
        "device_type": f"try_cast({extra['Device Type']} AS BIGINT)",
        "device_id": f"try_cast({extra['Device Id']} AS BIGINT)",
        "bytes": f"try_cast(coalesce({extra['bytes']}, {extra['size']}) AS BIGINT)",
        "label": extra["name"],
        "labels": extra["labels"],
        "message_in": f"try_cast({extra['In msg nelems']} AS BIGINT)",
        "message_out": f"try_cast({extra['Out msg nelems']} AS BIGINT)",
        "message_dtype": extra["dtype"],
        "attributes": f"""CASE WHEN {" OR ".join(f"({test})" for test in unfit.values())}
            THEN json_merge_patch(coalesce(leftover, '{{}}'), json_object({kept}))::VARCHAR
            ELSE nullif(leftover, '{{}}') END""",
    }
    structure = _literal([_EVENT])
    return f"""
        WITH parsed AS (SELECT unnest(json_transform(doc, {structure})) AS e FROM documents),
        events AS (SELECT unnest(e) FROM parsed WHERE e IS NOT NULL),
        typed AS (SELECT *, json_transform(args, {_literal(ARGUMENTS)}) AS a FROM events),
        counted AS (SELECT *, len(json_keys(args)) > {known} AS more FROM typed),
        split AS (SELECT *,
            CASE WHEN more THEN json_extract_string(args, {paths}) END AS extra,
            CASE WHEN more THEN json_merge_patch(args, {patch})::VARCHAR END AS leftover
            FROM counted)
        SELECT {", ".join(f'{value} AS "{name}"' for name, value in columns.items())} FROM split
    """


class Normaliser:
    """One DuckDB connection that turns documents into Arrow tables."""

    def __init__(self, threads: int | None = None) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET preserve_insertion_order = true")
        if threads:
            self._connection.execute(f"SET threads = {threads}")
        self._query = _query()

    def table(self, documents: Sequence[bytes]) -> pa.Table | None:
        """Columns of all events of the documents, in order; None where one is malformed."""
        # a batch each: DuckDB's threads take batches, and keep their order
        batches = [
            pa.record_batch({"doc": pa.array([document], pa.string())}) for document in documents
        ]
        self._connection.register("documents", pa.Table.from_batches(batches))
        try:
            table: pa.Table = self._connection.sql(self._query).to_arrow_table()
        except (duckdb.InvalidInputException, duckdb.ConversionException):
            return None
        finally:
            self._connection.unregister("documents")
        return table

    def close(self) -> None:
        self._connection.close()
