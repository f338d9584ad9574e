"""The strict grammar of JSON events, and the borders at which a broken one ends.

Texts are bytes decoded as Latin-1, so that an index in the text is an offset in the bytes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from json.scanner import make_scanner
from typing import cast

WS = r"[ \t\r\n]*"
EVENT_KEYS = (
    "ph|name|cat|pid|tid|ts|dur|args|id|id2|s|tts|tdur|bp|sf|esf|stack|estack|cname|scope|bind_id"
)
KEY_AND_COLON = rf'"[^"\\\n]{{0,200}}"{WS}:'

PAGE = 1 << 14
"""Characters parsed as a text of their own: an error costs time in proportion to its position,
since the standard library counts the lines up to it."""

SEPARATOR = re.compile(rf"{WS}(,?){WS}")
BLANKS = re.compile(r"[ \t\r\n\0,]*")
FIRST_KEY = re.compile(rf'\{{{WS}"((?:[^"\\]|\\.){{0,1000}})"{WS}:')
EVENT_OBJECT = re.compile(rf'\{{{WS}"(?:{EVENT_KEYS})"{WS}:')
TRACE_EVENTS = re.compile(rf'"traceEvents"{WS}:{WS}[\[{{]')
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
ABSURD = re.compile(r"[0-9]{300}|[0-9.][eE]\+?[0-9]{3}")

_EXPONENT = re.compile(r"[0-9.][eE]\+?[0-9]{3}")
_FOUR_DIGITS = re.compile(r"[0-9]{4}")
_BORDER = re.compile(
    rf'\{{{WS}"(?:{EVENT_KEYS})"{WS}:|"traceEvents"{WS}:{WS}(?=\[)|\}}{WS}(?=\]{WS}(?:[\}}\[]|,{WS}"|$))'
)
_BEFORE_BORDER = 256
_BRACKET = re.compile(r"[\[{]")
_DEEPEST = 500
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?')
_LONGEST_TOKEN = 12
_LONGEST_MANTISSA = 64


class Verdict(Enum):
    """What the strict parser says of a value: valid, valid as far as it goes, or neither."""

    VALID = "valid"
    MORE = "more"
    BROKEN = "broken"
    DEEP = "deep"


@dataclass(frozen=True, slots=True)
class Scan:
    """Outcome of a strict parse; `constants` tells whether NaN or Infinity occurred."""

    verdict: Verdict
    value: object = None
    end: int = 0
    constants: bool = False


class StrictScanner:
    """The C parser of the standard library, told to note the constants JSON does not know."""

    def __init__(self) -> None:
        self.constants: list[str] = []
        decoder = json.JSONDecoder(parse_constant=self.constants.append)
        self.parse = make_scanner(cast("make_scanner", decoder))

    def scan(self, text: str, index: int) -> Scan:
        """Parses the value that starts at `index`, in as small a piece of the text as will do."""
        size = PAGE
        while True:
            scan = self._scan_piece(text[index : index + size], index)
            if scan.verdict is Verdict.MORE and size == PAGE and _is_deep(text, index):
                return Scan(Verdict.DEEP)
            if scan.verdict is not Verdict.MORE or index + size >= len(text):
                break
            size *= 16
        if scan.verdict is Verdict.DEEP and size > PAGE:
            # only what the first page shows may decide: it is the same however bytes arrive
            return Scan(Verdict.BROKEN)
        return scan

    def _scan_piece(self, piece: str, index: int) -> Scan:
        self.constants.clear()
        try:
            value, end = self.parse(piece, 0)
        except (ValueError, StopIteration, RecursionError) as error:
            return Scan(verdict_of(error, len(piece)))
        return Scan(Verdict.VALID, value, index + end, bool(self.constants))


def verdict_of(error: Exception, size: int) -> Verdict:
    """Whether a strict parse failed only because the text of `size` characters ends."""
    if isinstance(error, RecursionError):
        return Verdict.DEEP
    if isinstance(error, json.JSONDecodeError):
        ends = error.msg.startswith("Unterminated string") or size - error.pos < _LONGEST_TOKEN
    elif isinstance(error, StopIteration):
        ends = size - int(error.value) < _LONGEST_TOKEN
    else:
        ends = False
    return Verdict.MORE if ends else Verdict.BROKEN


def _is_deep(text: str, start: int) -> bool:
    """Whether the first page opens more brackets than any event does, and closes them not.

    Up to Python 3.12 the parser itself stops there; later ones go on, nine times as deep.
    """
    outside = _STRING.sub("", text[start : start + PAGE])
    opened = outside.count("{") + outside.count("[")
    return opened - outside.count("}") - outside.count("]") > _DEEPEST


def past_nesting(text: str, start: int) -> int:
    """Index behind so many brackets that no event can hold them all."""
    brackets = islice(_BRACKET.finditer(text, start), _DEEPEST, _DEEPEST + 1)
    return next((match.start() for match in brackets), start)


def may_hold_absurd(text: str) -> bool:
    """Whether `text` may hold a number beyond double precision. Quick, may say yes in vain."""
    # 309 digits in a row cover at least four of every 75th character
    if _FOUR_DIGITS.search(text[::75]):
        return True
    return any(_ends_number(text, match.start() + 1) for match in _EXPONENT.finditer(text))


def _ends_number(text: str, end: int) -> bool:
    """Whether the digits before `end` are a number of their own, not the middle of a word."""
    before = text[max(0, end - _LONGEST_MANTISSA) : end].rstrip("0123456789.+-")
    return not before or before[-1] in ":,[ \t\r\n"


def next_border(text: str, start: int, end: int) -> int:
    """Index at which reading can go on after `start`: the next event, or the end of the list.

    Returns -1 where there is none before `end`.
    """
    for match in _BORDER.finditer(text, start, end):
        found = match.group()
        if found[0] != "{":
            return match.end()
        before = text[max(0, match.start() - _BEFORE_BORDER) : match.start()]
        if _may_precede(before, certain='"ph"' in found):
            return match.start()
    return -1


def _may_precede(before: str, *, certain: bool) -> bool:
    """Whether an event may start behind `before`; `certain` if it can hardly be anything else.

    A brace behind a colon or an opening bracket is part of an event; one in the middle of a
    line, behind neither a comma nor a bracket, may be text in a name.
    """
    last = before.rstrip(" \t\r\n")[-1:]
    if last in (":", "[", "{"):
        return False
    return certain or last in ("", "}", ",", "]") or "\n" in before[before.rfind(last) :]
