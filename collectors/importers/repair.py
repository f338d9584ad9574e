"""Broken JSON values rewritten as valid ones, piece by piece, so that numbers keep their digits.

One pass over the tokens with a stack of open containers; nothing is parsed into objects.
A repair is made only where one reading is left, otherwise the value is `Broken`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from neuron_explorer.collectors.importers import quoted
from neuron_explorer.collectors.importers.grammar import KEY_AND_COLON, WS, next_border
from neuron_explorer.collectors.importers.scalars import scalar

MAX_DEPTH = 100
MAX_READINGS = 4
"""How many closing quotes are tried for the first string that could end in several places."""

_PLAIN = r'"[^"\\\x00-\x1f]*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,40})?"
_SCALAR = rf"(?:{_PLAIN}|{_NUMBER}|true|false|null)"
_FLAT_LIST = rf"\[{WS}(?:{_SCALAR}(?:{WS},{WS}{_SCALAR})*+{WS})?\]"
_ITEM = rf"(?:{_SCALAR}|{_FLAT_LIST})"
_LIST = rf"\[{WS}(?:{_ITEM}(?:{WS},{WS}{_ITEM})*+{WS})?\]"
_INNER = rf"{_PLAIN}{WS}:{WS}(?:{_SCALAR}|{_LIST})"
_FLAT_OBJECT = rf"\{{{WS}(?:{_INNER}(?:{WS},{WS}{_INNER})*+{WS})?\}}"
_SURE_MEMBER = (
    rf"{_PLAIN}{WS}:{WS}(?:{_SCALAR}|{_LIST}|{_FLAT_OBJECT})"
    rf"(?={WS}(?:,?{WS}{KEY_AND_COLON}|\}}{WS}(?:[,\]\}}\{{]|$)))"
)
_MEMBERS = re.compile(rf"{WS}(,?){WS}({_SURE_MEMBER}(?:{WS},{WS}{_SURE_MEMBER})*+)")
_ELEMENT = re.compile(rf"{WS}(,?){WS}({_NUMBER}|true|false|null|{_FLAT_LIST})(?={WS}[,\]])")
_BLANK = re.compile(r"[ \t\r\n]*")
_GAP = re.compile(r"(?:[ \t\r\n\0]+|/\*.{0,500}?\*/|//[^\n]{0,500})+", re.DOTALL)
_BARE_KEY = re.compile(rf"[A-Za-z_]\w{{0,60}}(?={WS}:)", re.ASCII)
_NESTED_EVENT = re.compile(rf'\{{{WS}(?:"args"|[^{{}}]{{0,300}}?"ph"){WS}:')
_AFTER_VALUE = re.compile(r"[ \t\r\n\0]*(?:[,\{\[\]\}n]|$)")
_TOKEN = re.compile(r'[^\s,\[\]{}":\0]{1,10000}', re.ASCII)
_LONG_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that had to be mended and where."""

    kind: str
    position: int


@dataclass(frozen=True, slots=True)
class Repaired:
    """A value as valid JSON text, the index after it, and at most one note of each kind."""

    text: bytes
    end: int
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a value cannot be read.

    Attributes:
        position: index of the token that does not fit.
        hit_end: whether the text simply ended.
        swallowed: whether that token is an event inside a list of this one.
    """

    position: int
    hit_end: bool = False
    swallowed: bool = False


class Known(Enum):
    """What is known of a value before it is read."""

    NOTHING = "an event; others may follow, or seem to be in it"
    ALONE = "a value next to `traceEvents`; its end is not known"
    VALID = "valid JSON but for its numbers and characters"


class _BrokenError(Exception):
    def __init__(self, broken: Broken) -> None:
        super().__init__()
        self.broken = broken


def repair(
    text: str, start: int, end: int, *, unescaped: bool = False, known: Known = Known.NOTHING
) -> Repaired | Broken:
    """Rewrites the value at `start` as valid JSON.

    Args:
        text: bytes decoded as Latin-1.
        start: index of the value.
        end: index beyond which nothing is looked at.
        unescaped: whether backslashes are no escapes in this file.
        known: what is known of it.
    """
    outcome: Repaired | Broken = Broken(start)
    for reading in range(MAX_READINGS):
        attempt = _Attempt(text, start, end, unescaped=unescaped, known=known)
        attempt.skip = reading
        try:
            return attempt.run()
        except _BrokenError as error:
            if reading == 0:
                outcome = error.broken
            if not attempt.guessed:
                break
    return outcome


class _Attempt:
    """One reading of one value."""

    def __init__(self, text: str, start: int, end: int, *, unescaped: bool, known: Known) -> None:
        self._text, self._start, self._pos, self._end = text, start, start, end
        self._unescaped, self._known = unescaped, known
        self._out: list[str] = []
        self._stack: list[str] = []
        self._notes: dict[str, Note] = {}
        self._fresh = True
        self._has_phase = False
        self._border = -1
        self.skip = 0
        self.guessed = False

    def run(self) -> Repaired:
        self._value("")
        while self._stack:
            if self._stack[-1] == "{":
                self._member()
            else:
                self._element()
        if self._known is Known.NOTHING:
            self._check_what_follows()
        data = "".join(self._out).encode("latin-1")
        return Repaired(self._utf8(data), self._pos, tuple(self._notes.values()))

    def _check_what_follows(self) -> None:
        if not _AFTER_VALUE.match(self._text, self._pos, self._end):
            self._fail()

    # ---- containers

    def _member(self) -> None:
        match = _MEMBERS.match(self._text, self._pos, self._end)
        if match:
            self._join(commas=len(match.group(1)))
            self._put_members(match.group(2), match.end())
            return
        commas = self._gap()
        char = self._peek()
        if char == "}":
            self._close(commas)
        elif char in "{]" and self._only_brace_missing(char):
            self._note("unclosed_event")
            self._out.append("}" * len(self._stack))
            self._stack.clear()
        else:
            self._join(commas)
            start = self._pos
            self._key(char)
            self._colon(start)
            self._value("{")

    def _put_members(self, members: str, end: int) -> None:
        self._has_phase |= '"ph"' in members and len(self._stack) == 1
        self._out.append(members)
        self._pos = end

    def _only_brace_missing(self, char: str) -> bool:
        """Whether what is missing before the next event is nothing but closing braces."""
        if not self._has_phase or "[" in self._stack:
            return False
        if char == "]":
            return len(self._stack) == 1
        return next_border(self._text, self._pos, self._end) == self._pos

    def _element(self) -> None:
        match = _ELEMENT.match(self._text, self._pos, self._end)
        if match:
            self._join(commas=len(match.group(1)))
            self._out.append(match.group(2))
            self._pos = match.end()
            return
        commas = self._gap()
        char = self._peek()
        if char == "]":
            self._close(commas)
        elif char == "}":
            self._note("unclosed_list")
            self._out.append("]")
            self._stack.pop()
            self._fresh = False
        elif char == "{" and self._is_nested_event():
            raise _BrokenError(Broken(self._pos, swallowed=True))
        else:
            self._join(commas)
            self._value("[")

    def _is_nested_event(self) -> bool:
        found = _NESTED_EVENT.match(self._text, self._pos, self._end)
        return found is not None and self._known is Known.NOTHING

    def _open(self, char: str) -> None:
        if len(self._stack) >= MAX_DEPTH and self._known is not Known.VALID:
            self._fail()
        self._stack.append(char)
        self._out.append(char)
        self._pos += 1
        self._fresh = True

    def _close(self, commas: int) -> None:
        if commas:
            self._note("extra_comma")
        self._out.append("}" if self._stack.pop() == "{" else "]")
        self._pos += 1
        self._fresh = False

    def _join(self, commas: int) -> None:
        """Puts the comma that belongs between two values of a container."""
        if commas > (not self._fresh):
            self._note("extra_comma")
        elif not commas and not self._fresh:
            self._note("missing_comma")
        if not self._fresh:
            self._out.append(",")
        self._fresh = False

    def _gap(self) -> int:
        """Skips blanks, comments and commas, and counts the commas."""
        commas = 0
        while True:
            match = _GAP.match(self._text, self._pos, self._end)
            if match:
                self._pos = match.end()
                self._note_gap(match.group())
            if not self._text.startswith(",", self._pos, self._end):
                return commas
            commas += 1
            self._pos += 1

    def _note_gap(self, gap: str) -> None:
        if "\0" in gap:
            self._note("nul_byte")
        if "/" in gap:
            self._note("comment")

    # ---- keys and values

    def _key(self, char: str) -> None:
        if char != '"':
            self._bare_key()
            return
        key = quoted.read_key(self._text, self._pos, self._end, unescaped=self._unescaped)
        if key is None:
            self._fail(hit_end='"' not in self._text[self._pos + 1 : self._end])
        self._take(key)

    def _bare_key(self) -> None:
        match = _BARE_KEY.match(self._text, self._pos, self._end)
        if match is None:
            self._fail()
        self._note("bare_key")
        self._take(quoted.Quoted(f'"{match.group()}"', match.end()))

    def _colon(self, start: int) -> None:
        self._has_phase |= self._out[-1] == '"ph"' and len(self._stack) == 1
        self._blanks()
        if self._peek() != ":":
            # what was taken for a key may be the quote of a lost string and reach into the next
            self._pos = start
            self._fail()
        self._pos += 1
        self._out.append(":")
        self._blanks()

    def _blanks(self) -> None:
        match = _GAP.match(self._text, self._pos, self._end)
        if match:
            self._pos = match.end()
            self._note_gap(match.group())

    def _value(self, place: str) -> None:
        char = self._peek()
        if char in "{[":
            self._open(char)
        elif char == '"':
            self._string(place)
        else:
            self._scalar()

    def _string(self, place: str) -> None:
        sure = self._known is Known.VALID
        strict = quoted.read_strict(self._text, self._pos, self._end, None if sure else place)
        if strict and (not self._unescaped or quoted.looks_escaped(strict.text[1:-1])):
            self._take(strict)
            return
        limit = self._limit()
        skip = 0 if self.guessed else self.skip
        bodies = quoted.read_guessed(self._text, self._pos, limit, place, skip)
        body = next(bodies, None)
        if body is None:
            self._fail(hit_end=limit == self._end)
        self.guessed = True
        stop, end = body
        content = self._text[self._pos + 1 : stop]
        self._take(quoted.render(content, end, unescaped=self._unescaped, closed=end > stop))

    def _limit(self) -> int:
        """No string reaches beyond the start of the next event."""
        if self._border <= self._pos:
            border = next_border(self._text, self._pos + 1, self._end)
            self._border = self._end if border < 0 else border
        return self._border

    def _take(self, string: quoted.Quoted) -> None:
        for kind in string.kinds:
            self._note(kind)
        self._out.append(string.text)
        self._pos = string.end

    def _scalar(self) -> None:
        match = _LONG_NUMBER.match(self._text, self._pos, self._end)
        if match is None or match.end() - self._pos <= 10000:
            match = _TOKEN.match(self._text, self._pos, self._end)
        token = match.group() if match else ""
        if self._pos + len(token) >= self._end:
            self._fail(hit_end=True)
        if not token and self._text[self._pos] not in ",]}":
            self._fail()
        text, kind = scalar(token)
        if kind:
            self._note(kind)
        self._out.append(text)
        self._pos += len(token)

    # ---- plumbing

    def _peek(self) -> str:
        if self._pos >= self._end:
            self._fail(hit_end=True)
        return self._text[self._pos]

    def _note(self, kind: str) -> None:
        self._notes.setdefault(kind, Note(kind, self._pos))

    def _fail(self, *, hit_end: bool = False) -> NoReturn:
        raise _BrokenError(Broken(self._pos, hit_end=hit_end))

    def _utf8(self, data: bytes) -> bytes:
        try:
            data.decode()
        except UnicodeDecodeError:
            self._pos, end = self._start, self._pos
            self._note("bad_utf8")
            self._pos = end
            return data.decode("utf-8", "replace").encode()
        return data
