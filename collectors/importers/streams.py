"""Streams of bytes on top of each other: disk, gzip, zip, other encodings than UTF-8."""

from __future__ import annotations

import codecs
import zipfile
import zlib
from pathlib import Path
from typing import Protocol

from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.errors import ImportFailedError

BLOCK = 1 << 18
"""Compressed bytes read at once."""

_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_STEP = 64


class Stream(Protocol):
    """Anything bytes are read from."""

    @property
    def truncated(self) -> bool:
        """Whether the data ended before its end."""
        ...

    def read(self, size: int) -> bytes:
        """At most about `size` bytes; b"" at the end."""
        ...


class DiskStream:
    """An unbuffered file: blocks are big, a second copy of each would only cost."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb", buffering=0)
        self.truncated = False
        self._read = 0

    @property
    def position(self) -> int:
        """Bytes read so far; where a zip file jumps about, where it stands now."""
        return self._read

    def read(self, size: int) -> bytes:
        data = self.file.read(size) or b""
        self._read += len(data)
        return data

    def moved(self, position: int) -> None:
        """Says that somebody else reads the file and stands at `position`."""
        self._read = position

    def close(self) -> None:
        self.file.close()


class WithHead:
    """A stream whose first bytes were already taken, whole again."""

    def __init__(self, source: Stream, head: bytes) -> None:
        self.source = source
        self._head = head

    @property
    def truncated(self) -> bool:
        return self.source.truncated

    def read(self, size: int) -> bytes:
        if not self._head:
            return self.source.read(size)
        head, self._head = self._head[:size], self._head[size:]
        return head + self.source.read(size - len(head)) if size > len(head) else head


class GzipStream:
    """All members of a gzip or zlib stream, as far as they can be decoded."""

    def __init__(self, source: Stream, issues: IssueLog, disk: DiskStream) -> None:
        self.truncated = False
        self._source, self._issues, self._disk = source, issues, disk
        self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._input = b""
        self._ended = False

    def read(self, size: int) -> bytes:
        pieces: list[bytes] = []
        missing = size
        while missing > 0 and not self._ended:
            piece = self._piece(missing)
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        """Some bytes; b"" does not mean the end."""
        if self._member.eof:
            self._next_member()
            return b""
        data = self._input or self._source.read(BLOCK)
        if not data:
            return self._cut(size)
        before = self._member.copy()
        try:
            piece = self._member.decompress(data, size)
        except zlib.error as error:
            return self._salvage(before, data, size, error)
        self._input = self._member.unused_data or self._member.unconsumed_tail
        return piece

    def _cut(self, size: int) -> bytes:
        """The source has ended inside of a member; a little output may still be held back."""
        piece = self._member.decompress(b"", size)
        if piece:
            return piece
        self._ended = self.truncated = True
        self._issues.add(
            "gzip_cut",
            position=self._disk.position,
            action="everything readable before it was kept (offset in the compressed file)",
        )
        return b""

    def _next_member(self) -> None:
        """Goes on with the next member, over the zeros that pad some files."""
        padded = self._input or self._source.read(BLOCK)
        while padded and not (data := padded.lstrip(b"\0")):
            padded = self._source.read(BLOCK)
        if not padded:
            self._ended = True
            return
        if len(data) < len(_GZIP_MAGIC):
            data += self._source.read(BLOCK)
        self._input = data
        if data.startswith(_GZIP_MAGIC):
            self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
            return
        self._ended = True
        self._issues.add(
            "trailing_garbage",
            position=self._disk.position - len(data),
            example=data[:200].decode("latin-1"),
            action="ignored (offset in the compressed file)",
        )

    def _salvage(
        self, member: zlib._Decompress, data: bytes, size: int, error: zlib.error
    ) -> bytes:
        """What `data` holds before the byte that does not decode."""
        pieces: list[bytes] = []
        produced = used = 0
        for step in (_STEP, 1):
            while used < len(data) and produced < size + (_STEP << 10):
                before = member.copy()
                try:
                    piece = member.decompress(data[used : used + step])
                except zlib.error:
                    member = before
                    break
                pieces.append(piece)
                produced += len(piece)
                used += step
        self._corrupt(data[used:], error)
        return b"".join(pieces)

    def _corrupt(self, rest: bytes, error: zlib.error) -> None:
        self._issues.add(
            "gzip_corrupt",
            position=self._disk.position - len(rest),
            example=str(error),
            action="everything decoded before it was kept (offset in the compressed file)",
        )
        following = rest.find(_GZIP_MAGIC)
        if "incorrect" in str(error) and "check" in str(error):
            # only the checksum is wrong: the text is whole, other members may follow
            self._input = rest[following:] if following >= 0 else b""
            self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
            self._ended = following < 0
            return
        self._ended = self.truncated = True


class ZipStream:
    """The one trace in a zip file."""

    def __init__(self, path: Path, disk: DiskStream, issues: IssueLog) -> None:
        self.truncated = False
        self._disk, self._issues = disk, issues
        archive = zipfile.ZipFile(disk.file)
        member = _only_trace(path, archive)
        try:
            self._member = archive.open(member)
        except (RuntimeError, NotImplementedError) as error:
            raise ImportFailedError(
                f"{path}: {member.filename} in it cannot be read: {error}",
                hint="unpack it with another tool and import the trace in it",
            ) from error

    def read(self, size: int) -> bytes:
        try:
            data = self._member.read(size)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            self._issues.add("gzip_corrupt", position=self._disk.position, example=str(error))
            self.truncated = True
            return b""
        self._disk.moved(self._disk.file.tell())
        return data


class Transcoded:
    """Text of another encoding as UTF-8; what cannot be decoded becomes U+FFFD."""

    def __init__(self, source: Stream, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ended = False

    @property
    def truncated(self) -> bool:
        return self._source.truncated

    def read(self, size: int) -> bytes:
        while not self._ended:
            data = self._source.read(size)
            self._ended = not data
            if text := self._decoder.decode(data, self._ended):
                return text.encode("utf-8", "replace")
        return b""


def encoding_of(head: bytes) -> tuple[str, int]:
    """Encoding of a text that starts with `head`, and the size of its byte order mark."""
    marks = (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    )
    for mark, encoding in marks:
        if head.startswith(mark):
            return encoding, len(mark)
    return _unmarked_encoding(head[:4]), 0


def _unmarked_encoding(head: bytes) -> str:
    """JSON starts with an ASCII character, so the place of the zeros tells."""
    nonzero = tuple(byte > 0 for byte in head)
    patterns: dict[tuple[bool, ...], str] = {
        (True, False, False, False): "utf-32-le",
        (False, False, False, True): "utf-32-be",
        (True, False, True, False): "utf-16-le",
        (False, True, False, True): "utf-16-be",
    }
    return patterns.get(nonzero, "utf-8")


def _only_trace(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [m for m in archive.infolist() if not m.is_dir() and "__MACOSX" not in m.filename]
    traces = [m for m in members if m.filename.lower().endswith((".json", ".json.gz"))] or members
    if len(traces) != 1:
        raise ImportFailedError(
            f"{path} is a zip file with {len(traces)} traces in it",
            hint="unpack it and import the files in it",
        )
    return traces[0]
