"""Reads Chrome trace JSON of any layout, whole or broken, from any position, event by event.

    scanner = EventScanner(issues)
    for block in blocks:
        events += scanner.feed(block)      # each is one strictly valid JSON object, as bytes
    events += scanner.finish()

Two states: inside a list of events, and outside of one, where top-level objects have keys.
How the bytes are cut between calls of `feed` makes no difference to what comes out.

Top-level shapes: a bare list, closed or not; `{"traceEvents": [...]}`, also nested in itself;
events line by line; several of these one after the other. Keys may come before and after the
events. A key that occurs twice in an event stays twice in its text.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from neuron_explorer.collectors.importers.buffer import ScanBuffer
from neuron_explorer.collectors.importers.eventreader import (
    WINDOWS,
    EventReader,
    UnescapedFileError,
    Unreadable,
)
from neuron_explorer.collectors.importers.grammar import (
    BLANKS,
    EVENT_OBJECT,
    FIRST_KEY,
    TRACE_EVENTS,
    WS,
    next_border,
)
from neuron_explorer.collectors.importers.header import HeaderReader
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.repair import Broken

__all__ = ["EventScanner", "UnescapedFileError"]

MAX_NESTING = 1000

_EMPTY_OBJECT = re.compile(rf"\{{{WS}\}}")
_LISTS = re.compile(r"\[(?:[ \t\r\n]*\[)*")
_PYTHON_REPR = re.compile(rf"\{{{WS}'")
_TOP_RESUME = re.compile(rf'\{{(?={WS}["}}])|\[')
_OBJECT_RESUME = re.compile(rf'"[^"\\\n]{{1,200}}"{WS}:|[\[\]}}]|\{{{WS}["}}]')
_LOOKAHEAD = 1 << 12
_BYTE_ORDER_MARK = "\xef\xbb\xbf"


class _Comma(Enum):
    """Whether a comma belongs before what comes next."""

    DUE = "due"
    NONE = "none"
    EITHER = "either"


class EventScanner:
    """Streaming scanner of one file.

    Attributes:
        closed: whether the end of a list of events was seen.
        truncated: after `finish`, whether the file was cut.
        last_offset: after `finish`, the byte offset up to which a cut file could be used.
    """

    def __init__(
        self,
        issues: IssueLog,
        *,
        offset: int = 0,
        inside_events: bool = False,
        unescaped: bool = False,
    ) -> None:
        """Starts at a byte offset of the file, outside of the events or between two of them.

        Args:
            issues: where everything that is not as it should be is counted.
            offset: position of the first byte fed, for the issues.
            inside_events: whether that is inside the list of events.
            unescaped: whether backslashes in strings are no escapes (see UnescapedFileError).
        """
        self.closed = self.truncated = False
        self.last_offset: int | None = None
        self._unescaped = unescaped
        self._buffer = ScanBuffer(offset)
        self._events = EventReader(self._buffer, issues, unescaped=unescaped)
        self._header = HeaderReader(self._buffer, issues, self._events)
        self._open = ["["] if inside_events else []
        self._comma = _Comma.EITHER
        self._junk_end = -1

    @property
    def header(self) -> dict[str, Any]:
        """Top-level values other than `traceEvents`."""
        return self._header.values

    @property
    def between_events(self) -> bool:
        """Whether everything fed is used up and an event of the list may come next."""
        return self._listed and self._buffer.empty

    def begin(self, head: bytes) -> bool:
        """Reads the start of a file up to its first event.

        Returns:
            Whether the events come next, so that they may be read elsewhere (see `skip`).
            If not, `head` is unread as before.
        """
        trial = EventScanner(IssueLog(), unescaped=self._unescaped)
        if trial.feed(head) or not trial.between_events:
            return False
        self.feed(head)
        return True

    def skip(self, size: int) -> None:
        """Counts bytes of whole events that were read elsewhere."""
        self._buffer.skip(size)
        self._comma = _Comma.EITHER

    def feed(self, data: bytes) -> list[bytes]:
        """Events complete by now, each a strictly valid JSON object.

        Raises:
            UnescapedFileError: Backslashes are no escapes in this file: start it again with
                `unescaped=True`.
        """
        return self._advance() if self._buffer.feed(data) else []

    def finish(self) -> list[bytes]:
        """The events left when the file has ended."""
        self._buffer.final = True
        events = self._advance()
        if not self.truncated and "{" in self._open:
            self._cut(self._buffer.index)
        return events

    # ---- one step after the other

    @property
    def _listed(self) -> bool:
        return bool(self._open) and self._open[-1] == "["

    def _advance(self) -> list[bytes]:
        out: list[bytes] = []
        self._buffer.load()
        self._events.look_over()
        while self._step(out):
            pass
        return out

    def _step(self, out: list[bytes]) -> bool:
        """Takes what comes next; False where more must come or nothing is left."""
        buffer = self._buffer
        if self._comma is _Comma.NONE and not self._gap():
            return False
        before = buffer.index
        self._events.read_valid(out, listed=self._listed, due=self._comma is _Comma.DUE)
        if buffer.index > before:
            self._comma = _Comma.DUE if self._listed else _Comma.EITHER
        if not self._gap():
            return False
        char = buffer.text[buffer.index]
        return self._in_list(char, out) if self._listed else self._outside(char, out)

    def _gap(self) -> bool:
        """Skips blanks and commas, and zeros of a padded file; False where the text ends."""
        buffer = self._buffer
        match = BLANKS.match(buffer.text, buffer.index)
        end = match.end() if match else buffer.index
        if end == len(buffer.text) and not buffer.final:
            buffer.wait_for_more()
            return False
        self._note_gap(buffer.text[buffer.index : end], end)
        if buffer.position(buffer.index) == self._junk_end:
            self._junk_end = buffer.position(end)
        buffer.index = end
        return end < len(buffer.text)

    def _note_gap(self, gap: str, end: int) -> None:
        if "\0" in gap:
            self._events.note("nul_byte", self._buffer.index, end)
        commas = gap.count(",")
        closing = self._buffer.text.startswith("]", end)
        if self._listed:
            allowed = 0 if self._comma is _Comma.NONE or closing else 1
            missing = self._comma is _Comma.DUE and not closing and end < len(self._buffer.text)
            if commas > allowed:
                self._events.note("extra_comma", self._buffer.index, end + 1)
            elif missing and not commas:
                self._events.note("missing_comma", self._buffer.index, end + 1)
        self._comma = _Comma.EITHER

    # ---- inside a list of events

    def _in_list(self, char: str, out: list[bytes]) -> bool:
        if char == "]":
            return self._leave()
        if char == "[":
            return self._enter_lists()
        if char == "n":
            return self._null()
        if char == "{":
            return self._event(out)
        return self._list_junk("junk")

    def _leave(self) -> bool:
        self._open.pop()
        self._buffer.index += 1
        self._comma = _Comma.DUE
        self.closed = True
        return True

    def _enter_lists(self) -> bool:
        match = _LISTS.match(self._buffer.text, self._buffer.index)
        brackets = match.group().count("[") if match else 1
        self._open.extend("[" * min(brackets, MAX_NESTING - len(self._open)))
        self._buffer.index = match.end() if match else self._buffer.index + 1
        self._comma = _Comma.NONE
        return True

    def _null(self) -> bool:
        buffer = self._buffer
        if buffer.unread < 5 and not buffer.final:
            buffer.wait(5)
            return False
        if not buffer.text.startswith("null", buffer.index):
            return self._list_junk("junk")
        self._events.note("empty_event", buffer.index, buffer.index + 4)
        buffer.index += 4
        self._comma = _Comma.DUE
        return True

    def _event(self, out: list[bytes]) -> bool:
        buffer, before = self._buffer, self._buffer.index
        outcome = self._events.read_any(out)
        if outcome is None:
            taken = buffer.index > before
            if taken:
                # an event closed for want of its brace has taken the comma along
                whole = self._listed and buffer.text[buffer.index - 1] == "}"
                self._comma = _Comma.DUE if whole else _Comma.EITHER
            return taken
        python = _PYTHON_REPR.match(buffer.text, before)
        return self._unreadable(outcome, "python_repr" if python else "unreadable_event")

    def _list_junk(self, kind: str) -> bool:
        """Skips to the next event or to the end of the list."""
        buffer = self._buffer
        outcome: Unreadable | None = None
        for window in WINDOWS:
            end = buffer.index + window
            last = (buffer.final and end >= len(buffer.text)) or window == WINDOWS[-1]
            if buffer.unread < window and not buffer.final:
                buffer.wait(window)
                return False
            end = min(end, len(buffer.text))
            outcome = self._events.resume_after(Broken(buffer.index), end, last=last)
            if outcome:
                break
        return self._unreadable(outcome or Unreadable(None), kind)

    def _unreadable(self, stretch: Unreadable, kind: str) -> bool:
        buffer = self._buffer
        self._comma = _Comma.EITHER
        if stretch.resume is None:
            self._cut(buffer.index, kind)
            buffer.index = len(buffer.text)
            return False
        self._events.note(kind, buffer.index, stretch.resume)
        buffer.index = stretch.resume
        if buffer.text.startswith("[", stretch.resume):
            buffer.index += 1
        return True

    # ---- outside of a list

    def _outside(self, char: str, out: list[bytes]) -> bool:
        if char == "{":
            return self._object(out)
        if char == "[":
            return self._enter_lists()
        if char == '"':
            return self._entry()
        if char in "]}" and self._open:
            self._open.pop()
            self._buffer.index += 1
            return True
        return self._junk()

    def _object(self, out: list[bytes]) -> bool:
        """A top-level object: nothing, an event on its own, or the one that holds the events."""
        buffer = self._buffer
        if not buffer.final and buffer.unread < _LOOKAHEAD and not self._enough():
            buffer.wait_for_more()
            return False
        empty = _EMPTY_OBJECT.match(buffer.text, buffer.index)
        if empty:
            self._events.note("empty_event", buffer.index, empty.end())
            buffer.index = empty.end()
            return True
        if EVENT_OBJECT.match(buffer.text, buffer.index) and not self._holds_events():
            return self._event(out)
        if FIRST_KEY.match(buffer.text, buffer.index) or (buffer.final and not self.closed):
            return self._enter_object()
        return self._junk()

    def _enough(self) -> bool:
        """Whether the first key of the object at the index is there, or the object is empty."""
        text, index = self._buffer.text, self._buffer.index
        return bool(_EMPTY_OBJECT.match(text, index) or FIRST_KEY.match(text, index))

    def _holds_events(self) -> bool:
        buffer = self._buffer
        end = buffer.index + WINDOWS[0]
        border = next_border(buffer.text, buffer.index + 1, end)
        found = TRACE_EVENTS.search(buffer.text, buffer.index, end)
        # the border may be the end of the very key that is looked for
        return found is not None and (border < 0 or found.start() < border)

    def _enter_object(self) -> bool:
        if len(self._open) < MAX_NESTING:
            self._open.append("{")
        self._buffer.index += 1
        return True

    def _entry(self) -> bool:
        """A key of a top-level object and its value."""
        buffer = self._buffer
        key = self._header.key()
        if key is None:
            if not buffer.final and buffer.unread < _LOOKAHEAD:
                buffer.wait_for_more()
                return False
            return self._junk()
        name, start = key
        if name == "traceEvents" and buffer.text[start] in "[{":
            self._open.append(buffer.text[start])
            buffer.index = start + 1
            self._comma = _Comma.NONE
            return True
        return self._header.read(name, start)

    def _junk(self) -> bool:
        """Skips what is neither a key nor a bracket; one issue a stretch."""
        buffer = self._buffer
        start = buffer.index
        if buffer.text.startswith(_BYTE_ORDER_MARK, start):
            buffer.index += len(_BYTE_ORDER_MARK)
            return True
        pattern = _OBJECT_RESUME if self._open else _TOP_RESUME
        match = pattern.search(buffer.text, start + 1)
        if match is None and not buffer.final and buffer.unread < _LOOKAHEAD:
            buffer.wait(_LOOKAHEAD)
            return False
        buffer.index = match.start() if match else self._junk_tail()
        if buffer.position(start) != self._junk_end:
            python = _PYTHON_REPR.match(buffer.text, start)
            kind = "trailing_garbage" if self.closed and not self._open else "junk"
            self._events.note("python_repr" if python else kind, start, buffer.index)
        self._junk_end = buffer.position(buffer.index)
        return True

    def _junk_tail(self) -> int:
        """End of a stretch of junk that goes on, short of what may become a key."""
        size = len(self._buffer.text)
        return size if self._buffer.final else max(self._buffer.index + 1, size - 256)

    def _cut(self, index: int, kind: str = "cut") -> None:
        """Records that the file ends inside of something that began at `index`."""
        self.truncated = True
        self.last_offset = self._buffer.position(index)
        if kind != "junk":
            kind = "cut"
        self._events.note(kind, index, len(self._buffer.text))
