"""Documents of Chrome trace events -> one Arrow table of plain columns, in DuckDB.

A document is the text `[{event},{event},...]`, about one MiB. DuckDB parses it in C++ on
all cores, exact decimals included; what a document holds beyond the columns below stays
as JSON text in `attributes`.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa

from neuron_explorer.collectors.importers import plain
from neuron_explorer.collectors.importers.event_columns import (
    ARGUMENTS,
    DROPPED,
    EVENT,
    LEFTOVERS,
    NUMBERS,
    columns,
    literal,
    selected,
    unfit,
)


def _extra(key: str) -> str:
    return f"extra[{LEFTOVERS.index(key) + 1}]"


def _attributes() -> str:
    """Args without a column, and the text of numbers that do not fit theirs."""
    kept = ", ".join(
        f"'{name}', CASE WHEN {unfit(name)} THEN {text} END" for name, (text, _) in NUMBERS.items()
    )
    return f"""CASE WHEN {" OR ".join(map(unfit, NUMBERS))}
        THEN json_merge_patch(coalesce(leftover, '{{}}'), json_object({kept}))::VARCHAR
        ELSE nullif(leftover, '{{}}') END"""


def _events(*, keep_all: bool) -> str:
    """Events of the documents; `beside` holds their own keys that have no column."""
    parsed = f"unnest(json_transform(doc, {literal([EVENT | {'args': 'JSON'}])})) AS e"
    beside = "NULL::VARCHAR"
    if keep_all:
        # as JSON as well as by column: JSON keeps every key, only the column every digit
        parsed += """, unnest(json_transform(doc, '["JSON"]')) AS whole"""
        patch = literal(dict.fromkeys((*EVENT, "args")))
        beside = f"nullif(json_merge_patch(whole, {patch})::VARCHAR, '{{}}')"
    return f"""parsed AS (SELECT {parsed} FROM documents),
        events AS (SELECT unnest(e), {beside} AS beside FROM parsed WHERE e IS NOT NULL)"""


def _query(*, keep_all: bool) -> str:
    known = " + ".join(f'(a."{key}" IS NOT NULL)::INTEGER' for key in ARGUMENTS)
    patch = literal(dict.fromkeys((*ARGUMENTS, *DROPPED)))
    paths = "[" + ", ".join(f"'$.\"{key}\"'" for key in LEFTOVERS) + "]"
    found = {**columns(_extra), "attributes": _attributes()}
    return f"""
        WITH {_events(keep_all=keep_all)},
        typed AS (SELECT *, json_transform(args, {literal(ARGUMENTS)}) AS a FROM events),
        counted AS (SELECT *, len(json_keys(args)) > {known} AS more FROM typed),
        split AS (SELECT *,
            CASE WHEN more THEN json_extract_string(args, {paths}) END AS extra,
            CASE WHEN NOT starts_with(args, '{{') AND args <> 'null'
                THEN json_merge_patch(coalesce(beside, '{{}}'), json_object('args', args))::VARCHAR
                WHEN more AND beside IS NOT NULL
                THEN json_merge_patch(beside, json_merge_patch(args, {patch}))::VARCHAR
                WHEN more THEN json_merge_patch(args, {patch})::VARCHAR
                ELSE beside END AS leftover
            FROM counted)
        SELECT {selected(found)} FROM split
    """


_MALFORMED = (duckdb.InvalidInputException, duckdb.ConversionException)


class Normaliser:
    """One DuckDB connection that turns documents into Arrow tables."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET preserve_insertion_order = true")
        self._query = _query(keep_all=True)
        self._plain: str | None = None
        self._was_plain = False

    def expect_kineto(self) -> None:
        """Read only the keys Kineto writes beside an event's args, which all have a column."""
        self._query = _query(keep_all=False)
        self._plain = plain.query()

    def table(self, documents: Sequence[bytes]) -> pa.Table | None:
        """Columns of all events of the documents, in order; None where one is malformed."""
        if self._plain is not None:
            # one document tells whether it is worth trying all of them
            hopeful = self._was_plain or self._proven(documents[:1]) is not None
            table = self._proven(documents) if hopeful else None
            self._was_plain = table is not None
            if table is not None:
                return table
        return self._run(self._query, documents)

    def _proven(self, documents: Sequence[bytes]) -> pa.Table | None:
        table = self._run(self._plain or "", documents)
        return None if table is None else plain.proven(table, documents)

    def _run(self, query: str, documents: Sequence[bytes]) -> pa.Table | None:
        try:
            # a batch each: DuckDB's threads take batches, and keep their order
            batches = [pa.record_batch({"doc": _texts(document)}) for document in documents]
        except pa.ArrowInvalid:  # bytes that are not UTF-8
            return None
        self._connection.register("documents", pa.Table.from_batches(batches))
        try:
            table: pa.Table = self._connection.sql(query).to_arrow_table()
        except (*_MALFORMED, UnicodeDecodeError):
            # the latter: what DuckDB quotes of the document in its message ends inside a character
            return None
        finally:
            self._connection.unregister("documents")
        return table

    def close(self) -> None:
        self._connection.close()


def _texts(document: bytes) -> pa.StringArray:
    """One string, which is not copied.

    Raises:
        pa.ArrowInvalid: The bytes are not UTF-8.
    """
    ends = pa.py_buffer(np.array([0, len(document)], np.int32).tobytes())
    texts = pa.StringArray.from_buffers(1, ends, pa.py_buffer(document))
    texts.validate(full=True)
    return texts
