"""What a `trace.parquet` says of itself, read and checked before any query runs on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from neuron_explorer.errors import TraceError
from neuron_explorer.schema import METADATA_PREFIX, SCHEMA_VERSION

_MAKE_HINT = "record one with `neuron_explorer.profile()` or import one with `import`"


@dataclass(frozen=True)
class TraceFile:
    """One file of a trace."""

    path: Path
    metadata: dict[str, Any]
    """Decoded values by key, without the `neuron_explorer.` prefix."""
    columns: tuple[str, ...]
    ranks: tuple[int, ...]
    """Smallest and largest rank inside; empty where the file has no rows."""
    rank_shift: int = 0
    """Added to every rank, where two files claim the same one."""

    @property
    def rank(self) -> int:
        """The rank that file-level facts are filed under."""
        recorded = (self.metadata.get("summary") or {}).get("rank") or 0
        return (self.ranks[0] if self.ranks else int(recorded)) + self.rank_shift


def read_trace_files(paths: Sequence[Path]) -> list[TraceFile]:
    """Check every path and read its metadata.

    Raises:
        TraceError: No path given; a file is missing, empty, not Parquet, not a trace of ours,
            or written by a newer major version of the schema.
    """
    if not paths:
        raise TraceError("no trace given", hint=_MAKE_HINT)
    return _with_distinct_ranks([_read(path) for path in paths])


def _read(path: Path) -> TraceFile:
    _check_exists(path)
    try:
        with parquet.ParquetFile(path) as file:
            footer, columns = file.metadata, tuple(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(
            f"{path} is not a readable Parquet file: {_first_line(error)}",
            hint="copy, import or record the trace again",
        ) from error
    metadata = _decode(path, footer.metadata or {})
    _check_version(path, metadata)
    return TraceFile(path, metadata, columns, _rank_range(footer))


def _check_exists(path: Path) -> None:
    if not path.exists():
        raise TraceError(f"no trace at {path}", hint="check the path")
    if path.is_dir():
        raise TraceError(f"{path} is a folder, not a trace file", hint="name the files in it")
    if path.stat().st_size == 0:
        raise TraceError(f"{path} is empty (0 bytes)", hint="record or import it again")


def _decode(path: Path, raw: dict[bytes, bytes]) -> dict[str, Any]:
    prefix = METADATA_PREFIX.encode()
    try:
        return {
            key.removeprefix(prefix).decode(): json.loads(value)
            for key, value in raw.items()
            if key.startswith(prefix)
        }
    except ValueError as error:
        raise TraceError(
            f"{path} has metadata that is not JSON: {_first_line(error)}",
            hint="import or record the trace again",
        ) from error


def _check_version(path: Path, metadata: dict[str, Any]) -> None:
    version = metadata.get("schema_version")
    if not isinstance(version, str):
        raise TraceError(
            f"{path} is Parquet, but no trace of neuron_explorer: it names no schema version",
            hint=_MAKE_HINT,
        )
    theirs, ours = version.split(".")[0], SCHEMA_VERSION.split(".")[0]
    if not theirs.isdecimal() or int(theirs) != int(ours):
        newer = theirs.isdecimal() and int(theirs) > int(ours)
        raise TraceError(
            f"{path} has schema version {version}, this program reads {ours}.x",
            hint="upgrade neuron_explorer" if newer else "import or record the trace again",
        )


def _rank_range(footer: parquet.FileMetaData) -> tuple[int, ...]:
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    if "rank" not in names:
        return ()
    position = names.index("rank")
    found = [
        int(bound)
        for group in range(footer.num_row_groups)
        if (statistics := footer.row_group(group).column(position).statistics) is not None
        and statistics.has_min_max
        for bound in (statistics.min, statistics.max)
        if bound is not None
    ]
    return (min(found), max(found)) if found else ()


def _with_distinct_ranks(files: list[TraceFile]) -> list[TraceFile]:
    """Every key starts with rank, so no two files may share one: shift them all if any do."""
    ordered = sorted((file.ranks for file in files if file.ranks), key=lambda ranks: ranks[0])
    if all(left[1] < right[0] for left, right in pairwise(ordered)):
        return files
    shifted, following = [], 0
    for file in files:
        first, last = file.ranks or (0, 0)
        shifted.append(replace(file, rank_shift=following - first))
        following += last - first + 1
    return shifted


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
