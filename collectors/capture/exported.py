"""The Chrome trace of the last window, which torch writes only once: kept for who wants a copy."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from neuron_explorer.collectors.capture.outputs import remove_leftovers

_PREFIX = "neuron_explorer."


class Exported:
    """Files of one session in a temporary folder that goes when the session does."""

    def __init__(self) -> None:
        self.current: Path | None = None
        """The last window; None where it has not been written."""
        self._folder: Path | None = None
        self._windows = 0

    def new(self) -> Path:
        """Where the next window goes.

        Raises:
            OSError: No temporary folder can be made.
        """
        if self._folder is None:
            remove_leftovers(Path(tempfile.gettempdir()), f"{_PREFIX}*")
            self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}."))
            weakref.finalize(self, _remove, self._folder, os.getpid()).atexit = False
        self._windows += 1
        return self._folder / f"window-{self._windows}.json"

    def copy(self, path: str) -> bool:
        """Copy the last window, packed where the name ends in `.gz`; False where there is none."""
        if self.current is None:
            return False
        if path.endswith(".gz"):
            with self.current.open("rb") as plain, gzip.open(path, "wb") as packed:
                shutil.copyfileobj(plain, packed)
        else:
            shutil.copyfile(self.current, path)
        return True

    def forget(self) -> None:
        """Remove the last window."""
        if self.current is not None:
            self.current.unlink(missing_ok=True)
            self.current = None

    def remove(self) -> None:
        """Remove everything."""
        folder, self._folder, self.current = self._folder, None, None
        if folder is not None:
            _remove(folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    # a forked child has the same folder in mind, which is its parent's
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
