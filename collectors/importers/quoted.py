"""Strings of broken JSON: where they end, and their text as a valid JSON string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile

from neuron_explorer.collectors.importers.grammar import EVENT_KEYS, KEY_AND_COLON, WS

LONGEST_GUESS = 1 << 20
"""How far the closing quote of a broken string is searched, in bytes."""

_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
_STRICT = re.compile(rf'"[^"\\\x00-\x1f]*+(?:{_ESCAPE}[^"\\\x00-\x1f]*+)*+"')
_KEY = re.compile(r'"[^"\n]{0,1000}"(?=[ \t\r\n]*:)')

# what may follow a string, by the container it stands in
_GAP = r"[ \t\r\n\0]*"
_AFTER = {
    "{": (
        rf"{_GAP}(?:,?{_GAP}(?:{KEY_AND_COLON}|/[*/])|,{_GAP}(?:[\{{\}}]|(?:{EVENT_KEYS}){WS}:)"
        rf"|\]|\}}{_GAP}(?:[,\]\}}\{{\[]|$|{KEY_AND_COLON}))"
    ),
    "[": rf'{_GAP}(?:[\]\}}]|,{_GAP}(?:["\[\{{\]]|[-+.]?[0-9]|true|false|null|-?nan|-?inf))',
    "": rf"{_GAP}(?:[,\}}]|$)",
}
_FOLLOWS = {place: re.compile(after) for place, after in _AFTER.items()}
_CLOSE = {
    "{": re.compile(rf'"(?={_AFTER["{"]})|(?<!")(?=,{WS}"(?:{EVENT_KEYS})"{WS}:)'),
    "[": re.compile(rf'"(?={_AFTER["["]})'),
    "": re.compile(rf'"(?={_AFTER[""]})'),
}
# a string that seems to hold one of these has ended before it
_FIELD = re.compile(
    rf',{WS}"(?:pid|tid|ts|dur)"{WS}:|(?<="),{WS}"(?:ph|cat|name|pid|tid|ts|dur|args)"(?!{WS}:)'
)
_RAW_SPECIAL = re.compile(r'\\"|[\\"\x00-\x1f]')
_SPECIAL = re.compile(rf'{_ESCAPE}|[\\"\x00-\x1f]')
_ESCAPED = re.compile(r'(?:[^\\]|\\(?:["\\/]|u[0-9a-fA-F]{4}))*+', re.DOTALL)
_PATH = re.compile(r"[A-Za-z]:\\[^\\]|\\\\[^\\]")
_VALID_ESCAPE = re.compile(_ESCAPE)
_UNICODE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u([0-9a-fA-F]{4})|\\."
)


@dataclass(frozen=True, slots=True)
class Quoted:
    """A string as valid JSON with its quotes, the index after it, and what had to be mended."""

    text: str
    end: int
    kinds: tuple[str, ...] = ()
    guessed: bool = False


def read_strict(text: str, start: int, end: int, place: str | None) -> Quoted | None:
    """The string at `start` if it is valid and what follows it fits its place.

    Args:
        text: the whole text.
        start: index of the opening quote.
        end: index beyond which nothing is looked at.
        place: `{` for a member's value, `[` for a list's element, "" outside of both; None where
            the text is known to be valid.
    """
    match = _STRICT.match(text, start, end)
    if match is None or (place is not None and not _FOLLOWS[place].match(text, match.end(), end)):
        return None
    return _without_lone_surrogates(match.group(), match.end())


def read_guessed(
    text: str, start: int, end: int, place: str, skip: int
) -> Iterator[tuple[int, int]]:
    """Bodies `(end of body, end of string)` the string at `start` may have, likeliest first."""
    end = min(end, start + LONGEST_GUESS)
    closes = _CLOSE[place].finditer(text, start + 1, end)
    field = _FIELD.search(text, start + 1, end)
    last = field.start() if field else end
    bodies = ((match.start(), match.end()) for match in closes)
    return takewhile(lambda body: body[0] <= last, islice(bodies, skip, None))


def read_key(text: str, start: int, end: int, *, unescaped: bool) -> Quoted | None:
    """The key at `start`, up to its closing quote."""
    match = _STRICT.match(text, start, end)
    if match and not (unescaped and not looks_escaped(match.group()[1:-1])):
        return _without_lone_surrogates(match.group(), match.end())
    match = _KEY.match(text, start, end)
    if match is None:
        return None
    return render(match.group()[1:-1], match.end(), unescaped=unescaped)


def looks_escaped(body: str) -> bool:
    """Whether the backslashes of a string are escapes even in a file where most are not.

    They are if each is doubled, stands before a quote or starts the code of a character, and
    the text is no path: exporters write names as they are but may get other texts escaped.
    """
    return _ESCAPED.fullmatch(body) is not None and _PATH.match(body) is None


def render(body: str, end: int, *, unescaped: bool, closed: bool = True) -> Quoted:
    """`body`, the text between the quotes, as valid JSON.

    In an unescaped file no backslash is an escape, except before a quote inside the string.
    """
    kinds = [] if closed else ["unclosed_string"]
    raw = "\\" in _VALID_ESCAPE.sub("", body) or (unescaped and not looks_escaped(body))
    raw = raw and "\\" in body
    if raw:
        kinds.append("bad_escape")
    mended = (_RAW_SPECIAL if raw else _SPECIAL).sub(_Mender(kinds, raw=raw), body)
    if raw:
        return Quoted(f'"{mended}"', end, tuple(kinds), guessed=True)
    quoted = _without_lone_surrogates(f'"{mended}"', end)
    return Quoted(quoted.text, end, (*kinds, *quoted.kinds), guessed=True)


class _Mender:
    """Replaces one special piece of a string's body and notes why."""

    def __init__(self, kinds: list[str], *, raw: bool) -> None:
        self._kinds = kinds
        self._raw = raw

    def __call__(self, match: re.Match[str]) -> str:
        piece = match.group()
        if piece == "\\":
            return "\\\\"
        if piece[0] == "\\":
            return piece
        if piece == '"':
            self._note("unescaped_quote")
            return '\\"'
        self._note("control_character" if piece != "\0" else "nul_byte")
        return f"\\u{ord(piece):04x}"

    def _note(self, kind: str) -> None:
        if kind not in self._kinds:
            self._kinds.append(kind)


def _without_lone_surrogates(quoted: str, end: int) -> Quoted:
    if "\\u" not in quoted:
        return Quoted(quoted, end)
    mended = _UNICODE.sub(_replace_lone, quoted)
    return Quoted(mended, end, () if mended == quoted else ("lone_surrogate",))


def _replace_lone(match: re.Match[str]) -> str:
    digits = match.group(1)
    if digits and 0xD800 <= int(digits, 16) <= 0xDFFF:
        return "\\ufffd"
    return match.group()
