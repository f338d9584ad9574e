"""A file is written under another name and takes its own when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A name beside `path` to write under: renamed where the block ends well, else removed.

    Whatever ends the block early, a signal too, leaves the older file of that name untouched.

    Raises:
        OSError: The draft cannot take the name.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield draft
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
