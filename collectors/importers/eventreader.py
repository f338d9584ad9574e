"""Single events out of a list of events: valid ones as they stand, broken ones repaired."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from neuron_explorer.collectors.importers.buffer import ScanBuffer
from neuron_explorer.collectors.importers.grammar import (
    ABSURD,
    BLANKS,
    EVENT_OBJECT,
    PAGE,
    SEPARATOR,
    SURROGATE,
    StrictScanner,
    Verdict,
    may_hold_absurd,
    next_border,
    past_nesting,
)
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.repair import Broken, Known, Note, Repaired, repair

WINDOWS = (1 << 16, 1 << 20, 1 << 24, 1 << 26)
"""How many bytes are looked at to decide on a broken value, the next only if one is too small.

A decision rests on exactly so many bytes (or on all that is left of the file), never on how
many happened to arrive together.
"""

MAX_EVENT = WINDOWS[-1]

_SURELY_FOLLOW = ("{", "]")
_MARGIN = 1024


class UnescapedFileError(Exception):
    """Raised once a file shows that its backslashes are no escapes: read it again as such."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stretch that holds no readable value; `resume` is None where the file ends in it."""

    resume: int | None


class EventReader:
    """Reads events at the index of a buffer."""

    def __init__(self, buffer: ScanBuffer, issues: IssueLog, *, unescaped: bool) -> None:
        self._buffer = buffer
        self._issues = issues
        self._unescaped = unescaped
        self._strict = StrictScanner()
        self._bad_utf8 = self._absurd = self._surrogates = self._doubts = False

    def look_over(self) -> None:
        """Asks once a buffer what would otherwise have to be asked once an event."""
        raw, text = self._buffer.raw, self._buffer.text
        self._bad_utf8 = not raw.isascii() and not _is_utf8(raw)
        self._absurd = may_hold_absurd(text)
        self._surrogates = "\\u" in text and SURROGATE.search(text) is not None
        backslashes = self._unescaped and "\\" in text
        self._doubts = (
            self._bad_utf8
            or self._absurd
            or self._surrogates
            or backslashes
            or len(text) > MAX_EVENT
        )

    def read_valid(self, out: list[bytes], *, listed: bool, due: bool) -> None:
        """Takes events for as long as they are strictly valid.

        Args:
            out: the events go here.
            listed: whether they stand in a list; outside of one no commas are due.
            due: whether a comma is due before the first one.
        """
        buffer = self._buffer
        while True:
            page = buffer.text[buffer.index : buffer.index + PAGE]
            used = self._read_page(page, out, listed=listed, due=due)
            buffer.index += used
            if not used:
                return
            due = listed

    def _read_page(self, page: str, out: list[bytes], *, listed: bool, due: bool) -> int:
        """Takes the valid events of one page and returns how much of it they fill."""
        parse, constants = self._strict.parse, self._strict.constants
        base, raw, index = self._buffer.index, self._buffer.raw, 0
        gap = SEPARATOR.match(page)
        while gap is not None:
            start = gap.end()
            if not (page.startswith("{", start) if listed else EVENT_OBJECT.match(page, start)):
                break
            constants.clear()
            try:
                value, end = parse(page, start)
            except (ValueError, StopIteration, RecursionError):
                break
            following = SEPARATOR.match(page, end)
            if following is None or not page.startswith(_SURELY_FOLLOW, following.end()):
                break
            doubtful = self._doubts and self._doubtful(base + start, base + end)
            if constants or doubtful or (not listed and "traceEvents" in value):
                break
            if due and not gap.group(1):
                self.note("missing_comma", base + start, base + end)
            if value:
                out.append(raw[base + start : base + end])
            else:
                self.note("empty_event", base + start, base + end)
            index, gap, due = end, following, listed
        return index

    def read_any(self, out: list[bytes]) -> Unreadable | None:
        """Takes the event at the index, repaired where need be; None also where more must come."""
        buffer = self._buffer
        scan = self._strict.scan(buffer.text, buffer.index)
        if scan.verdict is Verdict.MORE and not buffer.final and not self._swallowed():
            return self._wait_or_give_up()
        if scan.verdict is not Verdict.VALID:
            return self._take(self.mend(scan.verdict), out)
        follows = self._follows(scan.end)
        if follows is None:
            return None
        outcome = self.mend_valid(buffer.index, scan.end)
        if not follows or not outcome:
            longer = self.mend(Verdict.BROKEN)
            if longer is None:
                return None
            if not outcome or (isinstance(longer, Repaired) and longer.end > scan.end):
                outcome = longer
        return self._take(outcome, out)

    def _take(self, outcome: Repaired | Unreadable | None, out: list[bytes]) -> Unreadable | None:
        if isinstance(outcome, Repaired):
            self._emit(outcome, out)
            return None
        return outcome

    def _follows(self, end: int) -> bool | None:
        """Whether what follows an event may follow one; None where that must come first."""
        buffer = self._buffer
        match = BLANKS.match(buffer.text, end)
        after = match.end() if match else end
        if after == len(buffer.text) and not buffer.final:
            buffer.wait_for_more()
            return None
        return after == len(buffer.text) or buffer.text[after] in "{[]}n"

    def mend(self, verdict: Verdict, *, alone: bool = False) -> Repaired | Unreadable | None:
        """Repairs the value at the index, or tells where to go on; None where more must come."""
        buffer = self._buffer
        for window in WINDOWS:
            end = buffer.index + window
            last = buffer.final and end >= len(buffer.text)
            if not last and buffer.unread < window:
                buffer.wait(window)
                return None
            last = last or window == MAX_EVENT
            outcome = self._mend_within(min(end, len(buffer.text)), verdict, alone=alone, last=last)
            if outcome:
                return outcome
        return Unreadable(None)

    def mend_valid(self, start: int, end: int) -> Repaired | Unreadable | None:
        """The repair of a value that is valid, if need be but for its numbers or characters.

        None where its end cannot be trusted, since a backslash may hide another one.
        """
        if end - start > MAX_EVENT:
            return Unreadable(end)
        if self._unescaped and "\\" in self._buffer.text[start:end]:
            return None
        # one character more, since a number could go on where the text ends
        outcome = self._repair(start, end + 1, known=Known.VALID)
        return outcome if isinstance(outcome, Repaired) else Unreadable(end)

    def note_all(self, notes: tuple[Note, ...], start: int, end: int) -> None:
        """Logs what a repair noted.

        Raises:
            UnescapedFileError: The first bad escape of a file not known to be unescaped.
        """
        for note in notes:
            if note.kind == "bad_escape" and not self._unescaped:
                raise UnescapedFileError
            self.note(note.kind, note.position, end, start)

    def note(self, kind: str, position: int, end: int, start: int | None = None) -> None:
        """Logs one issue; its example is the text from `start` to `end`."""
        known = self._issues.count(kind) > 0
        example = None if known else self._buffer.example(position if start is None else start, end)
        self._issues.add(kind, position=self._buffer.position(position), example=example)

    def _doubtful(self, start: int, end: int) -> bool:
        text = self._buffer.text
        return (
            (self._bad_utf8 and not _is_utf8(self._buffer.raw[start:end], whole=True))
            or (self._unescaped and text.find("\\", start, end) >= 0)
            or (self._surrogates and SURROGATE.search(text, start, end) is not None)
            or (self._absurd and ABSURD.search(text, start, end) is not None)
            or end - start > MAX_EVENT
        )

    def _swallowed(self) -> bool:
        """Whether an event that goes on and on has taken other events for a list of its own."""
        buffer = self._buffer
        if buffer.unread < WINDOWS[0]:
            return False
        end = buffer.index + WINDOWS[0]
        outcome = self._repair(buffer.index, end)
        return isinstance(outcome, Broken) and outcome.swallowed

    def _wait_or_give_up(self) -> Unreadable | None:
        if self._buffer.unread > MAX_EVENT:
            return Unreadable(self._buffer.index + MAX_EVENT)
        self._buffer.wait_for_more()
        return None

    def _mend_within(
        self, end: int, verdict: Verdict, *, alone: bool, last: bool
    ) -> Repaired | Unreadable | None:
        """One try with the text up to `end`; None where that is too little to decide on."""
        buffer = self._buffer
        outcome: Repaired | Broken
        if verdict is Verdict.DEEP:
            outcome = Broken(past_nesting(buffer.text, buffer.index))
        else:
            outcome = self._repair(buffer.index, end, known=Known.ALONE if alone else Known.NOTHING)
        if isinstance(outcome, Repaired):
            return outcome if last or outcome.end < end - _MARGIN else None
        if alone:
            return Unreadable(None) if last or not outcome.hit_end else None
        if outcome.hit_end and (not last or verdict is Verdict.MORE):
            return Unreadable(None) if last else None
        return self.resume_after(outcome, end, last=last)

    def _repair(self, start: int, end: int, *, known: Known = Known.NOTHING) -> Repaired | Broken:
        text = self._buffer.text
        return repair(text, start, end, unescaped=self._unescaped, known=known)

    def resume_after(self, broken: Broken, end: int, *, last: bool) -> Unreadable | None:
        """Where to go on after a broken stretch; None where no border is found before `end`."""
        buffer = self._buffer
        if broken.swallowed:
            return Unreadable(broken.position)
        past = buffer.index if broken.hit_end else broken.position
        border = next_border(buffer.text, max(past, buffer.index + 1), end)
        if border >= 0 and (last or border < end - _MARGIN):
            return Unreadable(border)
        if not last:
            return None
        return Unreadable(None if buffer.final and end == len(buffer.text) else end)

    def _emit(self, repaired: Repaired, out: list[bytes]) -> None:
        buffer = self._buffer
        start, buffer.index = buffer.index, repaired.end
        self.note_all(repaired.notes, start, repaired.end)
        if repaired.text == b"{}":
            self.note("empty_event", start, repaired.end)
        else:
            out.append(repaired.text if repaired.notes else buffer.raw[start : repaired.end])


def _is_utf8(raw: bytes, *, whole: bool = False) -> bool:
    try:
        codecs.utf_8_decode(raw, "strict", whole)
    except UnicodeDecodeError:
        return False
    return True
