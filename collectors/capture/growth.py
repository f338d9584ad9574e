"""How much memory a recording may take: torch keeps every event until the window ends."""

from __future__ import annotations

import os
from pathlib import Path

_STATUS = Path("/proc/self/statm")
_MACHINE = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


class Growth:
    """By how much this process may grow while one window is recorded.

    Args:
        limit_bytes: The most; None = half of what is available when the window begins, since
            writing it takes about as much again.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._asked = limit_bytes
        self._limit: int | None = None
        self._before = 0

    def start(self) -> None:
        """A window begins."""
        available = available_bytes() if self._asked is None else 2 * self._asked
        self._limit = None if available is None else available // 2
        self._before = resident_bytes() or 0

    def over(self) -> int | None:
        """Bytes by which the process has grown where that is too much, else None; some 10 us."""
        if self._limit is None:
            return None
        grown = (resident_bytes() or 0) - self._before
        return grown if grown > self._limit else None


def resident_bytes() -> int | None:
    """Memory of this process; None where the system does not tell."""
    try:
        return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def available_bytes() -> int | None:
    """Memory that this process may still take, of the machine or of its control group."""
    found = [bytes_ for bytes_ in (_of_machine(), _of_group()) if bytes_ is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        lines = _MACHINE.read_text().splitlines()
    except OSError:
        return None
    return next((int(n.split()[1]) << 10 for n in lines if n.startswith("MemAvailable:")), None)


def _of_group() -> int | None:
    try:
        limit = int((_GROUP / "memory.max").read_text())
        return max(0, limit - int((_GROUP / "memory.current").read_text()))
    except (OSError, ValueError):
        # no control group here, or one without a limit ("max")
        return None
