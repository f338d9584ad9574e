"""Reads what `neuron-explorer export --to chrome` or `perfetto` wrote: every row as it was.

Such a file names its links, sources and costs itself, so nothing is found anew: a capture that
went out as JSON and came back says what it said before.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from neuron_explorer.collectors.importers.chrome import read_with
from neuron_explorer.collectors.importers.container import open_source
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.normalise import Normaliser
from neuron_explorer.collectors.interning import Column as Values
from neuron_explorer.collectors.writer import ROWS_A_GROUP, TraceWriter
from neuron_explorer.errors import ImportFailedError
from neuron_explorer.exchange import (
    ARGUMENTS,
    CARRIER,
    END,
    KEY,
    METADATA,
    STACK,
    TAKEN,
    TEXTS,
)
from neuron_explorer.progress import Progress
from neuron_explorer.schema import (
    BY_NAME,
    COLUMNS,
    SCHEMA_VERSION,
    arrow_schema,
    column_docs,
    type_name,
)

_HEAD_BYTES = 1 << 12
_LINKS = ("parent_id", "launch_id", "op_id", "forward_id")
_MEMORY_BYTES = 1 << 29
_TIMES = ("start_ns", "duration_ns")
_EVENT = {
    "ph": "VARCHAR",
    "cat": "VARCHAR",
    "name": "VARCHAR",
    "ts": "DECIMAL(24,3)",
    "dur": "DECIMAL(24,3)",
    "args": "JSON",
}


def is_export(path: Path) -> bool:
    """Whether a file begins as an export of this program does."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with closing(open_source(path, IssueLog())) as source:
        head = source.read(_HEAD_BYTES)[:_HEAD_BYTES]
    return f'"{KEY}":{{"tool_version"'.encode() in head.partition(b'"traceEvents"')[0]


def read_export(
    path: Path, writer: TraceWriter, issues: IssueLog, progress: Progress
) -> tuple[int, bool]:
    """Write the rows of such a file.

    Returns:
        The number of rows, and whether the file ended early.

    Raises:
        ImportFailedError: The file holds no row, rows of several ranks, or a newer schema.
    """
    with tempfile.TemporaryDirectory(prefix="neuron_explorer-") as folder:
        read = read_with(path, issues, progress, lambda: _Rows(Path(folder)), _Normaliser)
        rows = read.reader
        rows.close()
        _check(path, rows, read.header)
        missing = rows.announced is None or rows.announced != rows.rows
        if missing:
            count = max((rows.announced or 0) - rows.rows, 1)
            issues.add("rows_missing", count=count)
        base_ns = int(read.header.get("baseTimeNanoseconds") or 0)
        for table in _in_order(rows.file, base_ns, Path(folder)):
            writer.write(table)
        truncated = read.truncated or rows.announced is None
        writer.describe(_metadata(rows, issues, truncated=truncated))
    return rows.rows, truncated


class _Normaliser(Normaliser):
    """Documents -> the columns of the event table, and beside them what is no row of it."""

    def __init__(self) -> None:
        super().__init__()
        self._query = _query()

    def expect_kineto(self) -> None:
        """Its keys are known already."""


def _query() -> str:
    own = {c.name: _json_type(c.name) for c in COLUMNS}
    columns = ", ".join(f"{_value(c.name)} AS {c.name}" for c in COLUMNS)
    return f"""
        WITH parsed AS (
            SELECT unnest(json_transform(doc, {_literal([_EVENT])})) AS e FROM documents
        ),
        events AS (
            SELECT unnest(e), json_extract(e.args, '$.{KEY}') AS own
            FROM parsed WHERE e IS NOT NULL
        ),
        typed AS (SELECT *, json_transform(own, {_literal(own)}) AS o FROM events)
        SELECT ph, ts, own IS NOT NULL AS is_row, o.stack AS stack_number,
            CASE WHEN own IS NULL AND name IN ('{METADATA}', '{STACK}', '{END}')
                THEN args::VARCHAR END AS told,
            {columns}
        FROM typed
    """


def _json_type(name: str) -> object:
    if name == "stack":
        return "BIGINT"
    return ["VARCHAR"] if name == "sources" else type_name(BY_NAME[name])


def _value(name: str) -> str:
    if name in TEXTS:
        return f"""json_extract(args, '$."{ARGUMENTS[name]}"')::VARCHAR"""
    beside = {
        "name": f"CASE WHEN name = '{CARRIER}' THEN o.name ELSE name END",
        "category": "cat",
        "start_ns": "(ts * 1000)::BIGINT",
        "duration_ns": "(dur * 1000)::BIGINT",
        "stack": "NULL::VARCHAR",
        "attributes": _attributes(),
    }
    return beside.get(name, f"o.{name}")


def _attributes() -> str:
    """What stands in the args and is no column."""
    known = dict.fromkeys(TAKEN)
    rest = f"json_merge_patch(args, {_literal(known)})::VARCHAR"
    return f"""CASE WHEN own IS NOT NULL THEN coalesce(o.attributes, nullif({rest}, '{{}}')) END"""


def _literal(value: object) -> str:
    return "'" + json.dumps(value).replace("'", "''") + "'"


class _Rows:
    """Rows of the event table on their way to disk, in the file's order."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "rows.parquet"
        self.rows = 0
        self.announced: int | None = None
        """Rows that the end of the file speaks of; None where the end is missing."""
        self.metadata: dict[str, Any] = {}
        self.ranks: set[int] = set()
        self._stacks: dict[int, str] = {}
        self._schema = pa.schema([pa.field(f.name, _plain(f.type)) for f in arrow_schema()])
        self._writer = parquet.ParquetWriter(self.file, self._schema, compression="zstd")

    def append(self, table: pa.Table) -> None:
        told: Values = table["told"].drop_null()
        for text in told.to_pylist():
            self._note(json.loads(text))
        found = table.filter(table["is_row"])
        if not found.num_rows:
            return
        numbers: Values = found["stack_number"]
        texts = [self._stacks.get(number) for number in numbers.to_pylist()]
        stacks = pa.array(texts, pa.string())
        found = found.select([c.name for c in COLUMNS])
        found = found.set_column(found.schema.get_field_index("stack"), "stack", stacks)
        ranks: Values = pc.unique(found["rank"])
        self.ranks.update(ranks.to_pylist())
        self._writer.write_table(found.cast(self._schema))
        self.rows += found.num_rows

    def close(self) -> None:
        self._writer.close()

    def _note(self, args: Mapping[str, Any]) -> None:
        """What the file says beside its rows: metadata, stacks, how many rows it has."""
        if told := args.get(METADATA):
            self.metadata[told["key"]] = told["value"]
        if told := args.get(STACK):
            self._stacks[told["number"]] = "\n".join(told["stack"])
        self.announced = args.get("count", self.announced)


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_dictionary(kind) else kind


def _check(path: Path, rows: _Rows, header: Mapping[str, Any]) -> None:
    if not rows.rows:
        raise ImportFailedError(
            f"{path} holds no events", hint="export the trace again, without a window"
        )
    if len(rows.ranks) > 1:
        raise ImportFailedError(
            f"{path} holds {len(rows.ranks)} ranks in one",
            hint="export them one at a time: --rank 0, --rank 1, ...",
        )
    theirs = str((header.get(KEY) or {}).get("schema_version"))
    if theirs.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise ImportFailedError(
            f"{path} was exported with schema {theirs}, this program has {SCHEMA_VERSION}",
            hint="import it with the version that wrote it, or upgrade",
        )


def _in_order(file: Path, base_ns: int, folder: Path) -> Iterator[pa.Table]:
    """Rows by their ids, which become dense; a link to a row that is not here becomes NULL."""
    moved = {"event_id": "own.new_id"} | {name: f"of_{name}.new_id" for name in _LINKS}
    moved["start_ns"] = f"e.start_ns + {base_ns}"
    columns = ", ".join(f"{moved.get(c.name, f'e.{c.name}')} AS {c.name}" for c in COLUMNS)
    joins = "\n".join(
        f"LEFT JOIN ids AS of_{name} ON e.{name} = of_{name}.event_id" for name in _LINKS
    )
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{_MEMORY_BYTES} B'")
        connection.execute(f"SET temp_directory = '{folder}/spill'")
        # as in `database`: DuckDB 2.0.1 may cut sorted integers short with it
        connection.execute("SET disabled_optimizers = 'compressed_materialization'")
        connection.execute(f"""CREATE TABLE ids AS
            SELECT event_id, row_number() OVER (ORDER BY event_id) - 1 AS new_id
            FROM (SELECT DISTINCT event_id FROM read_parquet('{file}'))""")
        reader = connection.sql(f"""
            SELECT {columns} FROM read_parquet('{file}') AS e
            INNER JOIN ids AS own ON e.event_id = own.event_id
            {joins}
            ORDER BY own.new_id
        """).to_arrow_reader(ROWS_A_GROUP)
        for batch in reader:
            yield _typed(pa.Table.from_batches([batch]))


def _typed(table: pa.Table) -> pa.Table:
    arrays: list[Values] = []
    for field in arrow_schema():
        values: Values = table[field.name].combine_chunks()
        encoded = pa.types.is_dictionary(field.type)
        arrays.append(values.dictionary_encode() if encoded else values.cast(field.type))
    return pa.table(arrays, schema=arrow_schema())


def _metadata(rows: _Rows, issues: IssueLog, *, truncated: bool) -> dict[str, Any]:
    told = rows.metadata
    found: dict[str, Any] = {
        **told,
        "schema_version": SCHEMA_VERSION,
        "columns": column_docs(),
        "import_issues": [*(told.get("import_issues") or []), *issues.records()],
        "summary": (told.get("summary") or {}) | {"events": rows.rows, "rank": min(rows.ranks)},
    }
    if truncated:
        found["origin"] = (told.get("origin") or {}) | {"truncated": True}
    return found
