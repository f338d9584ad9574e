"""Writes `trace.parquet`: row group by row group, under a temporary name until it is whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from pyarrow import parquet

from neuron_explorer.errors import OutputError
from neuron_explorer.schema import METADATA_PREFIX, arrow_schema, stored_schema

ROWS_A_GROUP = 1 << 16
_DICTIONARY_BYTES = 16 << 20


class TraceWriter:
    """A Parquet file that appears under its name only when closed without an error.

    Raises:
        OutputError: The folder cannot be made or written, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._rows = 0

    def __enter__(self) -> Self:
        try:
            self._writer = self._open()
        except BaseException:
            self._discard()
            raise
        return self

    def _open(self) -> parquet.ParquetWriter:
        schema = arrow_schema()
        encoded: Any = [f.name for f in schema if pa.types.is_dictionary(f.type)]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return parquet.ParquetWriter(
                self._partial,
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=encoded,
                dictionary_pagesize_limit=_DICTIONARY_BYTES,
                write_statistics=["event_id", "start_ns", "rank", "layer", "step"],
                store_schema=False,
            )
        except OSError as error:
            raise self._failed(error) from error

    def write(self, rows: pa.Table) -> None:
        try:
            self._writer.write_table(rows, row_group_size=ROWS_A_GROUP)
            self._rows += rows.num_rows
        except OSError as error:
            raise self._failed(error) from error

    def describe(self, metadata: Mapping[str, Any]) -> None:
        """Add file-level metadata; each value becomes JSON text.

        The meaning of each column is metadata of its field as well.
        """
        texts = {
            METADATA_PREFIX + key: json.dumps(value, sort_keys=True)
            for key, value in metadata.items()
        }
        # source lines are long, and whoever reads them knows where they are
        short = {key: text for key, text in texts.items() if key != f"{METADATA_PREFIX}sources"}
        self._writer.add_key_value_metadata({"ARROW:schema": stored_schema(short)} | texts)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._writer.close()
            if kind is None:
                with self._partial.open("rb") as whole:
                    os.fsync(whole.fileno())
                self._verify()
                self._partial.replace(self.path)
        except OSError as failure:
            raise self._failed(failure) from failure
        finally:
            self._discard()

    def _verify(self) -> None:
        """Read the footer back: a disk may take bytes without keeping them."""
        try:
            found = parquet.read_metadata(self._partial).num_rows
        except pa.ArrowInvalid as error:
            raise OSError(f"what was written cannot be read back ({error})") from error
        if found != self._rows:
            raise OSError(f"of {self._rows} rows, {found} were written")

    def _discard(self) -> None:
        if self._partial.exists():
            self._partial.unlink()

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(
            f"cannot write {self.path}: {error.strerror or error}",
            hint="choose another place with -o; the old file, if any, is untouched",
        )
