"""Where each window and rank of a capture is written: never the same place twice."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from neuron_explorer.errors import OutputError

SUFFIX = ".parquet"


@dataclass
class Outputs:
    """Paths of one session, given out one a window.

    `trace.parquet` names the first window, `trace.window=001.parquet` the next. A folder
    holds `window=000.parquet`, .... With several ranks the name stands for a folder of
    `rank=0.parquet`, ... (and `rank=0.window=001.parquet`, ...).
    """

    output: Path
    rank: int | None = None
    """Rank of this process in a distributed job; None outside of one."""
    _given: int = field(default=0, init=False)

    def next(self) -> Path:
        """Path of the window that has just ended."""
        number, self._given = self._given, self._given + 1
        window = f"window={number:03d}"
        if self.rank is not None:
            rank = f"rank={self.rank}"
            return self.folder / ((f"{rank}.{window}" if number else rank) + SUFFIX)
        if not self._is_file:
            return self.folder / (window + SUFFIX)
        return self.output.with_suffix(f".{window}{SUFFIX}") if number else self.output

    @property
    def _is_file(self) -> bool:
        return self.output.suffix == SUFFIX

    @property
    def folder(self) -> Path:
        """Folder that the files lie in."""
        if not self._is_file:
            return self.output
        return self.output.parent if self.rank is None else self.output.with_suffix("")

    def check(self) -> None:
        """Make the folder and try it, before anything is recorded.

        Raises:
            OutputError: The folder cannot be made or written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise OutputError(
                f"cannot write to {self.folder}: {error.strerror or error}",
                hint="choose another place with output=",
            ) from error


def rank_of_environment() -> int | None:
    """Rank that `torchrun` and its kin set; None where the job has one process."""
    size, rank = os.environ.get("WORLD_SIZE", "1"), os.environ.get("RANK", "")
    several = size.isascii() and size.isdigit() and int(size) > 1
    return int(rank) if several and rank.isascii() and rank.isdigit() else None
