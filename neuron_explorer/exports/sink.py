"""Where an export goes: a file that appears only when it is whole, or stdout."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from neuron_explorer.drafts import draft_of
from neuron_explorer.errors import OutputError
from neuron_explorer.reports import console

_LEVEL = 4
"""Of gzip: a trace is repetitive, so more effort gains little."""
_HOLD = 1 << 20
"""Characters that are written at once."""


class Sink:
    """Takes text."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file
        self._held: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        self._held.append(text)
        self._size += len(text)
        if self._size >= _HOLD:
            self.flush()

    def flush(self) -> None:
        text, self._held, self._size = "".join(self._held), [], 0
        if self._file is None:
            console.write_data(text)
        else:
            self._file.write(text.encode("utf-8", "backslashreplace"))


@contextmanager
def open_sink(path: Path | None) -> Iterator[Sink]:
    """A sink for `path`, gzipped where it ends in .gz; None = stdout.

    Raises:
        OutputError: the file cannot be written; an older one of that name is untouched.
    """
    if path is None:
        sink = Sink(None)
        yield sink
        sink.flush()
        return
    try:
        with draft_of(path) as draft, draft.open("wb") as raw, _packed(raw, path) as file:
            sink = Sink(file)
            yield sink
            sink.flush()
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}", hint="name another file with -o"
        ) from error


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        yield raw
        return
    # neither name nor time: the same trace gives the same bytes
    packed: Any = gzip.GzipFile("", "wb", compresslevel=_LEVEL, fileobj=raw, mtime=0)
    with packed as file:
        yield file
