"""Rows of a query as a file, or as text for the clipboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from neuron_explorer.drafts import draft_of
from neuron_explorer.errors import OutputError, UsageError
from neuron_explorer.reports import console
from neuron_explorer.reports.tables import Table, table_csv
from neuron_explorer.sandbox import QueryResult

MOST_CLIPBOARD_BYTES = 100_000
"""Terminals drop longer OSC 52 sequences without a word."""


def clipboard_text(found: QueryResult) -> str:
    """CSV with a header line.

    Raises:
        UsageError: more than a terminal takes.
    """
    text = table_csv(Table(found.columns, found.rows))
    size = len(text.encode("utf-8", "backslashreplace"))
    if size > MOST_CLIPBOARD_BYTES:
        raise UsageError(
            f"{size:,} bytes are too many for a terminal's clipboard", hint="export them to a file"
        )
    return text


def write_rows(found: QueryResult, path: Path, inputs: Sequence[Path]) -> None:
    """Write the rows as the file's name says: `.csv` or `.parquet`.

    Raises:
        UsageError: another ending, or the file is one of the trace's.
        OutputError: the file cannot be written.
    """
    if path.exists() and any(path.samefile(file) for file in inputs):
        raise UsageError(f"{path} is the trace and would be overwritten")
    match path.suffix:
        case ".csv":
            console.write_file(path, table_csv(Table(found.columns, found.rows)))
        case ".parquet":
            _write_parquet(found, path)
        case _:
            raise UsageError(f"{path.name} is neither .csv nor .parquet")


def _write_parquet(found: QueryResult, path: Path) -> None:
    columns = list(zip(*found.rows, strict=True)) or [()] * len(found.columns)
    try:
        arrays = [pa.array(values) for values in columns]
        with draft_of(path) as draft:
            pq.write_table(pa.table(arrays, names=_unique(found.columns)), draft)
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"{path} cannot be written: {error}", hint="name another file") from error


def _unique(names: Sequence[str]) -> list[str]:
    """A query may call two columns the same; a Parquet file may not."""
    told: list[str] = []
    for name in names:
        number, free = 2, name
        while free in told:
            number, free = number + 1, f"{name}_{number}"
        told.append(free)
    return told
