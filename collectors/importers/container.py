"""Opens a trace file whatever it is wrapped in, and gives the bytes of its text as UTF-8.

What the file is comes from its first bytes, never from its suffix: plain text, gzip (any
number of members) or zlib, zip with one trace in it, and these in each other; then UTF-8 with
or without a mark, UTF-16 or UTF-32.
"""

from __future__ import annotations

import stat
from pathlib import Path
from types import TracebackType
from typing import Self
from zipfile import BadZipFile

from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.streams import (
    DiskStream,
    GzipStream,
    Stream,
    Transcoded,
    WithHead,
    ZipStream,
    encoding_of,
)
from neuron_explorer.errors import ImportFailedError

HEAD = 64
MAX_WRAPPINGS = 4

_UNREADABLE_FORMATS = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ\x00": ("xz", "unxz"),
}
_SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".zip": "zip", ".json": "plain text"}


class ByteSource:
    """Decompressed bytes of one file.

    Attributes:
        size: bytes on disk; 0 where the file is a pipe.
    """

    def __init__(self, path: Path, issues: IssueLog) -> None:
        """Opens the file; use `open_source`."""
        self._path = path
        self._issues = issues
        self.size = _checked_size(path)
        self._disk = _opened(path)
        try:
            self._stream = self._unwrapped()
        except BaseException:
            self._disk.close()
            raise

    @property
    def position(self) -> int:
        """Bytes of the file on disk that are used by now, for a progress bar."""
        return self._disk.position

    @property
    def truncated(self) -> bool:
        """Whether the compressed data ended, or became unreadable, before its end."""
        return self._stream.truncated

    def read(self, size: int) -> bytes:
        """At most about `size` bytes of text, however well they were compressed; b"" at the end.

        Raises:
            ImportFailedError: The disk or the pipe fails.
        """
        try:
            return self._stream.read(size)
        except OSError as error:
            message = f"cannot read {self._path}: {error.strerror or error}"
            raise ImportFailedError(message, hint="check the disk and the permissions") from error

    def close(self) -> None:
        self._disk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _unwrapped(self) -> Stream:
        stream: Stream = self._disk
        formats: list[str] = []
        head = self._head(stream)
        for _ in range(MAX_WRAPPINGS):
            name, inner = self._unwrap(WithHead(stream, head), head)
            if inner is None:
                break
            formats.append(name)
            stream, head = inner, self._head(inner)
        self._check_suffix(formats[0] if formats else "plain text")
        return self._as_utf8(WithHead(stream, head), head)

    def _head(self, stream: Stream) -> bytes:
        """The first bytes of a stream, however small the pieces it comes in."""
        head = b""
        try:
            while len(head) < HEAD and (piece := stream.read(HEAD - len(head))):
                head += piece
        except OSError as error:
            message = f"cannot read {self._path}: {error.strerror or error}"
            raise ImportFailedError(message, hint="check the disk and the permissions") from error
        if not head:
            raise ImportFailedError(
                f"{self._path} holds no data", hint="the export was cut; record the trace again"
            )
        return head

    def _unwrap(self, stream: WithHead, head: bytes) -> tuple[str, Stream | None]:
        for magic, (name, tool) in _UNREADABLE_FORMATS.items():
            if head.startswith(magic):
                raise ImportFailedError(
                    f"{self._path} is compressed with {name}, which is not read directly",
                    hint=f"unpack it first: {tool} {self._path.name}",
                )
        if head.startswith(b"\x1f\x8b") or _is_zlib(head):
            return "gzip", GzipStream(stream, self._issues, self._disk)
        if head.startswith(b"PK\x03\x04") and stream.source is self._disk:
            return "zip", self._unzipped()
        return "plain text", None

    def _unzipped(self) -> Stream:
        try:
            return ZipStream(self._path, self._disk, self._issues)
        except (BadZipFile, OSError) as error:
            raise ImportFailedError(
                f"{self._path} is a zip file that cannot be read: {error}",
                hint="unpack it with another tool and import the trace in it",
            ) from error

    def _as_utf8(self, stream: Stream, head: bytes) -> Stream:
        encoding, mark = encoding_of(head)
        if mark:
            stream.read(mark)
        if encoding == "utf-8":
            return stream
        self._issues.add("other_encoding", position=0, example=encoding)
        return Transcoded(stream, encoding)

    def _check_suffix(self, found: str) -> None:
        said = _SUFFIXES.get(self._path.suffix.lower())
        if said is not None and said != found:
            example = f"{self._path.name} is {found}"
            self._issues.add("wrong_suffix", position=0, example=example)


def open_source(path: Path, issues: IssueLog) -> ByteSource:
    """Opens `path` for reading; the result is a context manager.

    Raises:
        ImportFailedError: The file is missing, a folder, empty, not readable, or wrapped in
            something that cannot be unwrapped.
    """
    return ByteSource(path, issues)


def _checked_size(path: Path) -> int:
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise ImportFailedError(f"{path} does not exist", hint="check the path") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ImportFailedError(f"cannot open {path}: {reason}", hint="check the path") from error
    if stat.S_ISDIR(status.st_mode):
        raise ImportFailedError(f"{path} is a folder", hint="name the trace files in it")
    if stat.S_ISREG(status.st_mode) and not status.st_size:
        raise ImportFailedError(
            f"{path} is empty (0 bytes)", hint="the export was cut; record the trace again"
        )
    return status.st_size


def _opened(path: Path) -> DiskStream:
    try:
        return DiskStream(path)
    except OSError as error:
        raise ImportFailedError(
            f"cannot open {path}: {error.strerror}", hint="check the permissions"
        ) from error


def _is_zlib(head: bytes) -> bool:
    return head[:1] == b"\x78" and len(head) > 1 and int.from_bytes(head[:2], "big") % 31 == 0
