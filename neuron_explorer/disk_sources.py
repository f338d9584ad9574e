"""Source files on disk: the one place that reads files because a trace names them.

A trace may name any file. A process that shows what it reads to somebody else, such as the agents'
server, says beforehand which files that may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_confines: list[Callable[[Path], bool]] = []
"""All of them must agree; empty: any file of the user may be read."""


def source_bytes(file: str) -> bytes | None:
    """Content of a source file; None where it is not here, or may not be read."""
    path = Path(file)
    try:
        if path.is_file() and all(allows(path) for allows in _confines):
            return path.read_bytes()
    except (OSError, ValueError):  # the latter: a name that no file can have
        return None
    return None


@contextmanager
def confined(allows: Callable[[Path], bool]) -> Iterator[None]:
    """Read only what `allows` agrees to, in every thread of this process, until it ends."""
    _confines.append(allows)
    try:
        yield
    finally:
        _confines.remove(allows)
