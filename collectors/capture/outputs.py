"""Where each window and rank of a capture is written: never the same place twice."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from torch import distributed

from neuron_explorer.errors import OutputError

SUFFIX = ".parquet"

_TRIAL_BYTES = 1 << 12
_LEFT_OVER_S = 3600.0
"""Whoever has not touched its file for that long does not write it any more."""


@dataclass
class Outputs:
    """Paths of one session, given out one a window.

    `trace.parquet` names the first window, `trace.window=001.parquet` the next. A folder
    holds `window=000.parquet`, ..., and a session goes on behind those of earlier ones. With
    several ranks the name stands for a folder of `rank=0.parquet`, ... (and
    `rank=0.window=001.parquet`, ...).
    """

    output: Path
    rank: int | None = None
    """Rank of this process in a distributed job; None outside of one."""
    _given: int = field(default=0, init=False)
    _process: int = field(default_factory=os.getpid, init=False)

    def next(self) -> Path:
        """Path of the window that has just ended."""
        number = self._number()
        self._given = number + 1
        window = f"window={number:03d}"
        if os.getpid() != self._process:
            # a forked child that records for itself: the plain names are the parent's
            return self.folder / f"pid={os.getpid()}.{window}{SUFFIX}"
        if self.rank is not None:
            rank = f"rank={self.rank}"
            return self.folder / ((f"{rank}.{window}" if number else rank) + SUFFIX)
        if not self._is_file:
            return self.folder / (window + SUFFIX)
        return self.output.with_suffix(f".{window}{SUFFIX}") if number else self.output

    def _number(self) -> int:
        number = self._given
        if self._is_file or self.rank is not None or os.getpid() != self._process:
            return number
        # whoever names a folder wants what lies there kept: one session an epoch, for example
        while (self.folder / f"window={number:03d}{SUFFIX}").exists():
            number += 1
        return number

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
            OutputError: The folder cannot be made or written, or a folder lies where the
                file is to be.
        """
        if self._is_file and self.rank is None and self.output.is_dir():
            raise OutputError(
                f"cannot write to {self.output}: it is a folder",
                hint="choose another place with output=",
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder) as trial:
                trial.write(bytes(_TRIAL_BYTES))
                trial.flush()
            remove_leftovers(self.folder, f".*{SUFFIX}.*.partial")
        except OSError as error:
            raise OutputError(
                f"cannot write to {self.folder}: {error.strerror or error}",
                hint="choose another place with output=",
            ) from error


def remove_leftovers(folder: Path, pattern: str) -> None:
    """Remove what processes that were killed left half written.

    Args:
        folder: Where to look.
        pattern: Names that this package gives to what is not finished, with `.PID.` in them.
    """
    for path in folder.glob(pattern):
        numbers = [int(part) for part in path.name.split(".") if part.isdigit()]
        try:
            if not numbers or time.time() - path.stat().st_mtime < _LEFT_OVER_S:
                continue
            if _runs(numbers[-1]):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        except OSError:
            continue  # somebody else's, or gone already


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def rank_of_environment() -> int | None:
    """Rank of this process, None where the job has no other.

    `torchrun` and its kin set it; who starts processes otherwise (Lightning, `mp.spawn`) has
    told `torch.distributed` once the process group is there.
    """
    size, rank = os.environ.get("WORLD_SIZE", "1"), os.environ.get("RANK", "")
    several = size.isascii() and size.isdigit() and int(size) > 1
    if several and rank.isascii() and rank.isdigit():
        return int(rank)
    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return distributed.get_rank() if distributed.get_world_size() > 1 else None
