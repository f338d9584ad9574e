"""Opens what a command was given, with a bar where a person waits."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_explorer.loading import load
from neuron_explorer.progress import progress_bar
from neuron_explorer.trace import Trace


def open_trace(
    files: Sequence[str], device: str | None = None, *, raw: bool = False, quiet: bool
) -> Trace:
    """Parquet at once; other formats are imported to a temporary file first.

    Raises:
        TraceError: a file is missing or is no trace.
        ImportFailedError: nothing could be read from a file.
        DeviceError: `device` names no chip.
    """
    with progress_bar(quiet=quiet) as progress:
        return load(*files, device=device, raw=raw, progress=progress)
