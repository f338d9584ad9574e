"""What a trace wrote, made fit to be shown to an agent: bounded, and nothing but plain text.

Names in a trace are written by whoever recorded it. Control characters (terminal escapes, line
breaks, marks that reverse or hide text) are taken out and long strings are cut, which is counted.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

LONGEST = 1_000
LONGEST_TEXT = 8_000

_LINES_KEPT = frozenset(["advice", "doc", "meaning", "sql"])
"""Fields whose line breaks are the program's own: a comment in SQL ends with its line."""

_BREAKS = frozenset("\n\r\t\v\f\x85\u2028\u2029")
_HIDDEN = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])
"""Unicode categories of what is no visible character."""


class Cleaner:
    """Cleans one answer, and counts the strings that it had to cut."""

    def __init__(self) -> None:
        self.cut = 0

    def value(self, value: Any, field: str = "") -> Any:
        """The same value, every string in it cleaned, keys included."""
        if isinstance(value, str):
            return self.text(value, keep_lines=field in _LINES_KEPT)
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.value(v, str(k)) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, field) for item in value]
        # JSON has no infinity; whoever has one does not know
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def text(self, text: str, *, keep_lines: bool = False) -> str:
        longest = LONGEST_TEXT if keep_lines else LONGEST
        if len(text) > longest:
            self.cut += 1
            text = f"{text[: longest - 1]}…"
        if text.isprintable():
            return text
        return "".join(_shown(character, keep_lines=keep_lines) for character in text)


def _shown(character: str, *, keep_lines: bool) -> str:
    if character in _BREAKS:
        return character if keep_lines and character in "\n\t" else " "
    return "" if unicodedata.category(character) in _HIDDEN else character
