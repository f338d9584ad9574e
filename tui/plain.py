"""Lines for a terminal that shows ASCII only, such as one under the C locale."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from neuron_explorer.reports import formats

_ARROWS = str.maketrans("↑↓←→▸▾─│┌┐└┘├┤▀▁▂▃▄▅▆▇▌▐■◆", "^v<>>v-|++++++~__..::#||#*")


_COERCED = frozenset(["C.UTF-8", "C.utf8", "UTF-8"])
"""What Python itself puts into LC_CTYPE under the C locale (PEP 538)."""

_C_LOCALES = frozenset(["", "C", "POSIX"])


def ascii_only(environment: Mapping[str, str]) -> bool:
    """Whether the locale says that our glyphs would come out wrong."""
    names = ["LC_ALL", "LC_CTYPE", "LANG"]
    if environment.get("LC_CTYPE") in _COERCED and environment.get("LANG", "") in _C_LOCALES:
        names.remove("LC_CTYPE")
    locale = next(filter(None, map(environment.get, names)), "C")
    return not any(word in locale.lower() for word in ("utf-8", "utf8"))


def from_environment() -> bool:
    return ascii_only(os.environ)


class AsciiLines(LineFilter):
    """Our own glyphs as ASCII, and a question mark in each cell of anything else."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        _ = background
        return [Segment(_ascii(text), style, control) for text, style, control in segments]


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    plain = formats.plain(text).translate(_ARROWS)
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in plain)
