"""Reads a Chrome trace (Kineto or any other) into an `EventBuffer`.

Clean bytes go to DuckDB in documents cut at event borders; from the first document that
is malformed on, the scanner finds and repairs the events one by one. Both end in the
same normaliser, so a column means the same whichever way an event came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.collectors.ahead import ahead
from neuron_explorer.collectors.events import EventBuffer
from neuron_explorer.collectors.importers.container import ByteSource, open_source
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.normalise import Normaliser
from neuron_explorer.collectors.importers.scanner import EventScanner, UnescapedFileError
from neuron_explorer.collectors.importers.tables import TableReader
from neuron_explorer.collectors.interning import Column
from neuron_explorer.progress import Progress

PIECE_BYTES = 1 << 20
PIECES_A_QUERY = 32
"""Documents DuckDB parses together: enough to keep every core busy and to be worth planning (20 ms
a query), few enough to be small."""

_BORDER = re.compile(rb'\}\s*,(?=\s*\{\s*"(?:ph|name|cat|pid|tid|ts|args|id|dur)")')
_EVENTS = re.compile(rb'\s*(?:\[|\{.*?"traceEvents"\s*:\s*\[)', re.DOTALL)
_WRAPPED = re.compile(
    rb'\s*\[(?=\s*\{\s*(?!"(?:ph|name|cat|pid|tid|ts|args|id|dur)").*?"traceEvents"\s*:)',
    re.DOTALL,
)
"""The bracket of a list around a whole trace."""
_KINETO = re.compile(rb'"schemaVersion"|"[Ee]xternal id"')
_BORDER_REACH = 1 << 16
_NOT_A_NUMBER = r"[:,\[]\s*[-+]?(nan|inf)"


class Reader(Protocol):
    """Takes the tables of a file, one after the other."""

    @property
    def rows(self) -> int: ...
    def append(self, table: pa.Table) -> None: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=Reader)


@dataclass(frozen=True)
class Read(Generic[R]):
    """What a file held, besides the events in the reader."""

    reader: R
    header: dict[str, Any]
    truncated: bool


ChromeTrace = Read[TableReader]


def read_chrome(path: Path, issues: IssueLog, progress: Progress) -> ChromeTrace:
    """Read one file, whatever its compression and however broken.

    Raises:
        ImportFailedError: The file is missing, empty, or holds no trace at all.
    """
    return read_with(path, issues, progress, lambda: TableReader(EventBuffer(), issues), Normaliser)


def read_with(
    path: Path,
    issues: IssueLog,
    progress: Progress,
    reader: Callable[[], R],
    normaliser: Callable[[], Normaliser],
) -> Read[R]:
    """Read one file into a reader of the caller's, by the columns of its normaliser.

    Raises:
        ImportFailedError: The file is missing, empty, or holds no trace at all.
    """
    try:
        made = _Reading(path, issues, progress, reader(), normaliser(), unescaped=False)
        return made.run()
    except UnescapedFileError:
        issues.clear()
        return _Reading(path, issues, progress, reader(), normaliser(), unescaped=True).run()


class _Reading(Generic[R]):
    def __init__(
        self,
        path: Path,
        issues: IssueLog,
        progress: Progress,
        reader: R,
        normaliser: Normaliser,
        *,
        unescaped: bool,
    ) -> None:
        self._path, self._issues, self._progress = path, issues, progress
        self._unescaped = unescaped
        self._reader = reader
        self._normaliser = normaliser

    def run(self) -> Read[R]:
        try:
            with closing(self._normaliser), open_source(self._path, self._issues) as source:
                return self._read(source)
        except BaseException:
            self._reader.close()
            raise

    def _read(self, source: ByteSource) -> Read[R]:
        self._progress.start(f"reading {self._path.name}", source.size)
        scanner = EventScanner(self._issues, unescaped=self._unescaped)
        for table in ahead(self._tables(source, scanner)):
            self._reader.append(table)
            self._progress.update(source.position, self._reader.rows)
        self._progress.finish()
        truncated = source.truncated or scanner.truncated
        return Read(self._reader, scanner.header, truncated)

    def _tables(self, source: ByteSource, scanner: EventScanner) -> Iterator[pa.Table]:
        pieces = self._events(_pieces(source), scanner)
        for group in _grouped(pieces):
            table = self._clean(group, scanner)
            if table is not None:
                yield table
                continue
            for piece in group:
                table = self._clean([piece], scanner)
                if table is not None:
                    yield table
                else:
                    yield from self._repaired(scanner.feed(piece))
        yield from self._repaired(scanner.finish())

    def _events(self, pieces: Iterator[bytes], scanner: EventScanner) -> Iterator[bytes]:
        """The pieces without what comes before the first event, where that is plain."""
        head = next(pieces, b"")
        if wrapped := _WRAPPED.match(head):
            head = head[wrapped.end() :]
        if _KINETO.search(head):
            self._normaliser.expect_kineto()
        start = _EVENTS.match(head)
        if start is not None and not self._unescaped and scanner.begin(head[: start.end()]):
            head = head[start.end() :]
        yield head
        yield from pieces

    def _clean(self, pieces: list[bytes], scanner: EventScanner) -> pa.Table | None:
        """Table of pieces that hold whole, valid events and nothing else; else None."""
        # behind the last piece no comma stands, but the end of the list
        if self._unescaped or not scanner.between_events or not pieces[-1].endswith(b","):
            return None
        table = self._normaliser.table([_document(piece) for piece in pieces])
        if table is None or _has_bare_words(table):
            return None
        scanner.skip(sum(map(len, pieces)))
        return table

    def _repaired(self, events: Iterable[bytes]) -> Iterator[pa.Table]:
        """Tables of single events, all valid JSON by now."""
        document: list[bytes] = []
        size = 0
        for event in events:
            document.append(event)
            size += len(event)
            if size >= PIECE_BYTES:
                yield self._valid_table(document)
                document, size = [], 0
        if document:
            yield self._valid_table(document)

    def _valid_table(self, events: list[bytes]) -> pa.Table:
        table = self._normaliser.table([b"[" + b",".join(events) + b"]"])
        if table is not None:
            return table
        tables = [(event, self._normaliser.table([b"[" + event + b"]"])) for event in events]
        for event, single in tables:
            if single is None:
                self._issues.add(
                    "unreadable_event",
                    position=None,
                    example=event[:200].decode("utf-8", "replace"),
                    action="event left out",
                )
        good = [single for _, single in tables if single is not None]
        return pa.concat_tables(good) if good else self._normaliser.table([b"[]"])  # type: ignore[return-value]


def _pieces(source: ByteSource) -> Iterator[bytes]:
    """The stream in pieces of about a MiB, each but the last ending behind an event's comma."""
    rest: list[bytes] = []
    while block := source.read(PIECE_BYTES):
        rest.append(block)
        border = _last_border(block)
        if border is None:
            continue
        rest[-1] = block[:border]
        yield b"".join(rest)
        rest = [block[border:]]
    if tail := b"".join(rest):
        yield tail


def _last_border(block: bytes) -> int | None:
    reach = 4096
    while reach <= _BORDER_REACH:
        found = _BORDER.search(block, max(0, len(block) - reach))
        if found:
            return found.end()
        reach *= 4
    return None


def _grouped(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Pieces to parse together; the last one alone, since the list of events ends in it."""
    group: list[bytes] = []
    for piece in pieces:
        if len(group) == PIECES_A_QUERY:
            yield group
            group = []
        group.append(piece)
    if group[:-1]:
        yield group[:-1]
    if group:
        yield group[-1:]


def _document(piece: bytes) -> bytes:
    return b"[" + (piece[:-1] if piece.endswith(b",") else piece) + b"]"


def _has_bare_words(table: pa.Table) -> bool:
    """Whether NaN or infinity stood where a number should: DuckDB lets them pass."""
    untimed: Column = pc.and_(pc.is_null(table["ts"]), pc.not_equal(table["ph"], pa.scalar("M")))
    if pc.any(untimed).as_py():
        return True
    # the expression takes twenty times as long as these
    lowered: Column = pc.ascii_lower(table["attributes"])
    suspected = pc.or_(pc.match_substring(lowered, "nan"), pc.match_substring(lowered, "inf"))
    bare: Column = pc.match_substring_regex(lowered.filter(suspected), _NOT_A_NUMBER)
    return bool(pc.any(bare).as_py())
