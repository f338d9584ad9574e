"""Values that stand next to `traceEvents`: device properties, versions, base of the clock."""

from __future__ import annotations

import json
import re

from neuron_explorer.collectors.importers.buffer import ScanBuffer
from neuron_explorer.collectors.importers.eventreader import (
    MAX_EVENT,
    WINDOWS,
    EventReader,
    Unreadable,
)
from neuron_explorer.collectors.importers.grammar import (
    TRACE_EVENTS,
    WS,
    Scan,
    StrictScanner,
    Verdict,
)
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.repair import Repaired

MAX_VALUE = 1 << 20
"""Longest header value that is kept, in bytes of JSON text."""

MAX_KEYS = 1000

_KEY = re.compile(rf'"((?:[^"\\]|\\.){{0,1000}}+)"{WS}:{WS}(?=[^ \t\r\n])', re.DOTALL)
_FOLLOWS = re.compile(r"[ \t\r\n\0]*([,}\]]?)")
_NEXT_KEY = rf'"[^"\\\n]{{1,200}}"{WS}:'
_KEY_ON_NEW_LINE = re.compile(rf"\n[ \t\r]*(?={_NEXT_KEY})")
_KEY_ANYWHERE = re.compile(rf"[,\n]{WS}(?={_NEXT_KEY})")
_NEAR = 1 << 12
_HARMLESS = frozenset(
    {
        "absurd_number",
        "bad_escape",
        "bad_number",
        "bad_utf8",
        "control_character",
        "lone_surrogate",
        "not_a_number",
        "nul_byte",
    }
)


class HeaderReader:
    """Collects header values; the first value of a key stays."""

    def __init__(self, buffer: ScanBuffer, issues: IssueLog, events: EventReader) -> None:
        self.values: dict[str, object] = {}
        self._buffer, self._issues, self._events = buffer, issues, events
        self._strict = StrictScanner()

    def key(self) -> tuple[str, int] | None:
        """The key at the index and where its value starts; None where there is none."""
        match = _KEY.match(self._buffer.text, self._buffer.index)
        if match is None:
            return None
        spelled = match.group(1).encode("latin-1").decode("utf-8", "replace")
        return _unquoted(spelled), match.end()

    def read(self, key: str, start: int) -> bool:
        """Takes the value at `start`, or skips it where it is bad; False where more must come."""
        scan = self._strict.scan(self._buffer.text, start)
        if scan.verdict is Verdict.VALID:
            follows = self._follows(scan.end)
            if follows is None:
                return False
            if follows and not self._hides_events(start, scan.end):
                return self._take_valid(key, start, scan)
            return self._skip(start)
        if scan.verdict is Verdict.MORE and not self._buffer.final:
            return self._go_on(start)
        return self._mend(key, start)

    def _follows(self, end: int) -> bool | None:
        """Whether a comma or a closing brace follows; None where that is not known yet."""
        match = _FOLLOWS.match(self._buffer.text, end)
        if match and match.group(1):
            return True
        if match and match.end() == len(self._buffer.text) and not self._buffer.final:
            self._buffer.wait_for_more()
            return None
        return False

    def _hides_events(self, start: int, end: int) -> bool:
        """Whether a value is so long because its end is missing and the events are in it."""
        if end - start < WINDOWS[1]:
            return False
        return TRACE_EVENTS.search(self._buffer.text, start, start + WINDOWS[1]) is not None

    def _go_on(self, start: int) -> bool:
        size = self._buffer.unread
        if size > MAX_EVENT or self._hides_events(start, start + size):
            return self._skip(start)
        self._buffer.wait_for_more()
        return False

    def _take_valid(self, key: str, start: int, scan: Scan) -> bool:
        buffer = self._buffer
        if scan.end - start > MAX_VALUE:
            self._events.note("big_header_value", start, start + 200)
            buffer.index = scan.end
            return True
        outcome = self._events.mend_valid(start, scan.end)
        if isinstance(outcome, Repaired):
            return self._take(key, start, outcome)
        return self._mend(key, start)

    def _mend(self, key: str, start: int) -> bool:
        buffer = self._buffer
        before, buffer.index = buffer.index, start
        outcome = self._events.mend(Verdict.BROKEN, alone=True)
        buffer.index = before
        if outcome is None:
            return False
        if isinstance(outcome, Unreadable) or not self._follows(outcome.end):
            return self._skip(start)
        return self._take(key, start, outcome)

    def _take(self, key: str, start: int, repaired: Repaired) -> bool:
        if not _HARMLESS.issuperset(note.kind for note in repaired.notes):
            return self._skip(start)
        self._events.note_all(repaired.notes, start, repaired.end)
        self._put(key, json.loads(repaired.text), start)
        self._buffer.index = repaired.end
        return True

    def _put(self, key: str, value: object, start: int) -> None:
        known = self.values.get(key)
        if known is None and len(self.values) < MAX_KEYS:
            self.values[key] = value
        elif known != value:
            self._events.note("duplicate_key", start, start + 200)

    def _skip(self, start: int) -> bool:
        """Leaves out a bad value: on to the next key, or to the end where there is none."""
        buffer = self._buffer
        for window in WINDOWS[:2]:
            if not buffer.final and buffer.unread < window:
                buffer.wait(window)
                return False
            resume = self._next_key(start, min(start + window, len(buffer.text)))
            if resume >= 0:
                break
        else:
            resume = len(buffer.text) if buffer.final else start + WINDOWS[1]
        self._events.note("bad_header_value", start, resume)
        buffer.index = min(resume, len(buffer.text))
        return True

    def _next_key(self, start: int, end: int) -> int:
        """Index of the next key: one that begins a line, as exporters write it, if there is one."""
        text = self._buffer.text
        anywhere = _KEY_ANYWHERE.search(text, start, end)
        if anywhere is None:
            events = TRACE_EVENTS.search(text, start, end)
            return events.start() if events else -1
        near = min(end, start + _NEAR)
        events = TRACE_EVENTS.search(text, start, near)
        on_new_line = _KEY_ON_NEW_LINE.search(text, start, events.end() if events else near)
        return (on_new_line or anywhere).end()


def _unquoted(spelled: str) -> str:
    try:
        return str(json.loads(f'"{spelled}"', strict=False)).encode(errors="replace").decode()
    except ValueError:
        return spelled
