"""Where each window and rank of a capture is written: never the same place twice."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

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

    def __post_init__(self) -> None:
        """Let `~` be the user's home, as Arrow understands it when the file is written."""
        with suppress(RuntimeError):  # whose home nobody knows
            self.output = self.output.expanduser()

    def next(self) -> Path:
        """Path of the window that has just ended."""
        number = self._number()
        self._given = number + 1
        return self._path(number)

    def _path(self, number: int) -> Path:
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

    def of_earlier_runs(self) -> list[Path]:
        """Windows and ranks of an earlier run that had more of them than this one.

        They lie there under names of this session's, so whoever reads the folder mixes both.
        """
        if os.getpid() != self._process or (self.rank is None and not self._is_file):
            return []
        found = (path for path in self.folder.glob(f"*{SUFFIX}") if self._is_earlier(path.stem))
        return sorted(found)

    def _is_earlier(self, stem: str) -> bool:
        head = re.escape(self.output.stem) if self.rank is None else r"rank=(?P<rank>\d+)"
        named = re.fullmatch(rf"{head}(\.window=(?P<window>\d+))?", stem)
        if named is None:
            return False
        found = named.groupdict()
        rank, beyond = found.get("rank"), int(found["window"] or 0) >= self._given
        if rank is None or int(rank) == self.rank:
            return beyond
        job = _place_in_job()
        return self.rank == 0 and job is not None and int(rank) >= job[1]

    def check(self) -> None:
        """Make the folder and try it, before anything is recorded.

        Raises:
            OutputError: The folder cannot be made or written, the file cannot have its name,
                or a folder lies where the file is to be.
        """
        try:
            if self._is_file and self.rank is None and self.output.is_dir():
                raise _unwritable(self.output, "it is a folder")
            self.folder.mkdir(parents=True, exist_ok=True)
            self._try()
            remove_leftovers(self.folder, f".*{SUFFIX}.*.partial")
        except OSError as error:
            raise _unwritable(self.folder, error.strerror or str(error)) from error
        except ValueError as error:  # what no file name may hold
            raise _unwritable(self.folder, str(error)) from error

    def _try(self) -> None:
        """Write under a name as long as those that the windows have while they are written."""
        name = self._path(max(self._given, 1)).name
        with tempfile.NamedTemporaryFile(
            dir=self.folder, prefix=f".{name}.", suffix=f".{os.getpid()}.partial"
        ) as trial:
            trial.write(bytes(_TRIAL_BYTES))
            trial.flush()


def _unwritable(place: Path, why: str) -> OutputError:
    return OutputError(f"cannot write to {place}: {why}", hint="choose another place with output=")


@dataclass(frozen=True)
class Written:
    """A file just written, to be told from what others put in its place later."""

    path: Path
    _identity: tuple[int, int]

    @classmethod
    def now(cls, path: Path) -> Self:
        """As it lies there."""
        return cls(path, _identity_of(path))

    def replaced(self) -> bool:
        """Whether something else lies there; not where nothing does."""
        try:
            return _identity_of(self.path) != self._identity
        except OSError:
            return False


def _identity_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


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
    """Rank of this process, None where the job has no other."""
    found = _place_in_job()
    return None if found is None else found[0]


def _place_in_job() -> tuple[int, int] | None:
    """Rank of this process and how many there are, None where the job has no other.

    `torchrun` and its kin set it; who starts processes otherwise (Lightning, `mp.spawn`) has
    told `torch.distributed` once the process group is there.
    """
    size, rank = os.environ.get("WORLD_SIZE", "1"), os.environ.get("RANK", "")
    several = size.isascii() and size.isdigit() and int(size) > 1
    if several and rank.isascii() and rank.isdigit():
        return int(rank), int(size)
    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    there = distributed.get_world_size()
    return (distributed.get_rank(), there) if there > 1 else None
