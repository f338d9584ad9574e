"""Paths a user gives -> an open Trace, importing foreign files on the way."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuron_explorer.errors import TraceError, UsageError
from neuron_explorer.progress import Progress
from neuron_explorer.trace import Trace

_MAGIC = b"PAR1"
_FOREIGN_SUFFIXES = (".json", ".json.gz", ".json.zst", ".trace")


def load(
    *paths: str | Path,
    device: str | None = None,
    raw: bool = False,
    progress: Progress | None = None,
) -> Trace:
    """Open traces: Parquet files, folders or globs of them, or foreign files.

    Foreign files are imported to a temporary folder that lives as long as the trace.

    Args:
        paths: Files, folders (their `.parquet` files, else their JSON traces) or globs.
        device: Chip to judge against instead of the recorded one.
        raw: Times as recorded, where the import repaired them.
        progress: Hears how far an import is.

    Raises:
        UsageError: No path, or a glob that matches nothing.
        TraceError: A file is missing or not a trace.
        ImportFailedError: A foreign file cannot be read.
    """
    files = resolve([Path(path) for path in paths])
    foreign = [file for file in files if not is_parquet(file)]
    if not foreign:
        return Trace.open(files, device=device, raw=raw)
    folder = tempfile.TemporaryDirectory(prefix="neuron_explorer-")
    try:
        opened = Trace.open(
            [
                _imported(file, place, Path(folder.name), progress) if file in foreign else file
                for place, file in enumerate(files)
            ],
            device=device,
            raw=raw,
        )
    except BaseException:
        folder.cleanup()
        raise
    opened.keep_alive(folder)
    return opened


def resolve(paths: Sequence[Path]) -> list[Path]:
    """Files behind files, folders and globs, in name order within each."""
    if not paths:
        raise UsageError("no trace given", hint="name a file, a folder or a glob")
    return [file for path in paths for file in _files(path)]


def is_parquet(path: Path) -> bool:
    """Whether the file begins as Parquet does, whatever its suffix."""
    try:
        with path.open("rb") as file:
            return file.read(4) == _MAGIC or (path.suffix == ".parquet")
    except OSError:
        return path.suffix == ".parquet"


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from _in_folder(path)
    elif path.exists() or not any(letter in str(path) for letter in "*?["):
        yield path
    else:
        root = Path(path.anchor) if path.is_absolute() else Path()
        found = sorted(root.glob(str(path.relative_to(path.anchor) if path.anchor else path)))
        if not found:
            raise UsageError(f"no file matches {path}", hint="check the pattern")
        yield from found


def _in_folder(folder: Path) -> Iterator[Path]:
    parquet = sorted(folder.glob("*.parquet"))
    foreign = sorted(f for f in folder.iterdir() if f.name.endswith(_FOREIGN_SUFFIXES))
    if not parquet and not foreign:
        raise TraceError(
            f"{folder} holds no trace", hint="give a folder of .parquet or .json[.gz] traces"
        )
    yield from parquet or foreign


def _imported(file: Path, place: int, folder: Path, progress: Progress | None) -> Path:
    # only now: whoever opens Parquet does not wait for the importer to load
    from neuron_explorer.collectors.importers import ImportOptions, import_file  # noqa: PLC0415

    output = folder / f"{place:04d}.parquet"
    import_file(file, output, progress=progress, options=ImportOptions(rank=place))
    return output
