"""Text for cells: names stay text, whatever they hold, and every line is exactly as wide as asked.

Nothing here parses markup. A line is a sequence of pieces, each plain or (text, role); a role
becomes a colour only when it is drawn (`ink.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from neuron_explorer.reports import formats
from neuron_explorer.tui.ink import Ink

Piece = str | tuple[str, str]
"""Text, or text with the role it plays: `memory`, `dim`, `bad`, ..."""

Line = Sequence[Piece]

T = TypeVar("T")

_PLAIN = Style.null()
_NAMESPACES = re.compile(r"(?:\(anonymous namespace\)::|\b[A-Za-z_]\w*::)+")
_UNIT = re.compile(r"(?:%|[mun]?s|[kMGTP]?B|[kMGTP]?FLOP)(?![A-Za-z])")
_LONGEST = 1_000
"""Characters of a name that can matter on the widest terminal; the rest is cut before measuring."""


@lru_cache(maxsize=8_192)
def safe(text: str, width: int | None = None) -> str:
    """A recorded text fit to show: control characters escaped, the middle left out if long."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST // 2] + formats.ELLIPSIS + text[-_LONGEST // 2 :]
    return formats.name(text, width)


@lru_cache(maxsize=8_192)
def code(text: str) -> str:
    """A line of source: tabs become blanks up to the next stop of four, the rest is made safe."""
    return safe(text.rstrip("\r\n").expandtabs(4))


def fit(text: str, width: int, align: str = "left") -> str:
    """Exactly `width` cells: padded, or cut at the end with an ellipsis."""
    if width <= 0:
        return ""
    shown = formats.clip(text, width)
    missing = width - cell_len(shown)
    if missing < 0:
        return set_cell_size(shown, width)
    return " " * missing + shown if align == "right" else shown + " " * missing


def cut(line: Line, width: int) -> Line:
    """The line in at most `width` cells; where more is left out an ellipsis ends it."""
    if cells(line) <= width:
        return line
    kept: list[Piece] = []
    for piece in line:
        text, role = piece if isinstance(piece, tuple) else (piece, "")
        length = cell_len(text)
        if length >= width:
            return [*kept, (fit(text + formats.ELLIPSIS, width), role)]
        kept.append(piece)
        width -= length
    return kept


def bare(name: str) -> str:
    """The name of a C++ function without the namespaces in it and the type it gives."""
    return _NAMESPACES.sub("", name.removeprefix("void "))


@lru_cache(maxsize=8_192)
def short_name(name: str, width: int) -> str:
    """At most `width` cells of a name that is safe to show.

    What differs between the kernels of C++ is what follows their namespaces; all other names
    differ at their ends, so of those the middle goes.
    """
    if cell_len(name) <= width or not name.startswith("void "):
        return formats.shorten(name, width)
    return formats.clip(bare(name), width)


def fit_name(text: str, width: int) -> str:
    """A recorded name in exactly `width` cells."""
    return fit(short_name(safe(text), max(width, 0)), width)


def place(file: str | None, line: int | None, width: int) -> str:
    """`resnet.py:89` with as many of its folders before it as fit into `width` cells."""
    if file is None:
        return ""
    shown, *folders = reversed(formats.place(safe(file), line).split("/"))
    for folder in folders:
        longer = f"{folder}/{shown}"
        if cell_len(longer) > width:
            break
        shown = longer
    return formats.shorten(shown, width)


def known(amount: T | None, written: Callable[[T], str]) -> str:
    """An amount as `written` writes it; blank where it is not known."""
    return "" if amount is None else written(amount)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken between words where a word fits."""
    width = max(width, 1)
    lines = [""]
    for word in _words(text, width):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def paragraph(text: str, width: int, role: str = "", indent: int = 0) -> list[Line]:
    """A text as lines of one role, its own line breaks kept, indented by `indent` cells."""
    room = max(width - indent, 1)
    return [[" " * indent, (line, role)] for part in text.splitlines() for line in wrap(part, room)]


def cells(line: Line) -> int:
    """Cells that a line takes."""
    return sum(cell_len(_text(piece)) for piece in line)


def joined(cells_of_line: Iterable[tuple[str, str]]) -> Line:
    """Neighbours of one role as one piece: a line drawn cell by cell is slow to lay out."""
    return [
        ("".join(text for text, _ in same), role)
        for role, same in groupby(cells_of_line, key=lambda piece: piece[1])
    ]


def strip(line: Line, width: int, ink: Ink, role: str = "", base: Style = _PLAIN) -> Strip:
    """A line drawn in exactly `width` cells, on the ground that `role` gives it over `base`."""
    room = width
    segments = []
    for piece in line:
        text, own = piece if isinstance(piece, tuple) else (piece, "")
        length = cell_len(text)
        if length > room:
            text, length = fit(text, room), room
        if length:
            segments.append(Segment(text, ink.over(base, role, own)))
        room -= length
        if room <= 0:
            break
    if room > 0:
        segments.append(Segment(" " * room, ink.over(base, role, "")))
    return Strip(segments, width)


def share_of_cells(amounts: Sequence[float], width: int) -> list[int]:
    """`width` cells shared out in proportion; whatever is not nothing gets one where it can."""
    total = sum(amounts)
    if total <= 0 or width <= 0:
        return [0] * len(amounts)
    exact = [amount / total * width for amount in amounts]
    given = [
        max(int(part), 1 if amount > 0 else 0) for part, amount in zip(exact, amounts, strict=True)
    ]
    order = range(len(amounts))
    while sum(given) < width:
        given[max(order, key=lambda i: exact[i] - given[i])] += 1
    while sum(given) > width:
        # what has a single cell keeps it as long as another can give one
        given[max(order, key=lambda i: (given[i] > 1, given[i] - exact[i], given[i]))] -= 1
    return given


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]


def _words(text: str, width: int) -> Iterator[str]:
    """A number and its unit count as one word."""
    held = ""
    for word in text.split():
        both = f"{held} {word}"
        if held[-1:].isdigit() and _UNIT.match(word) and cell_len(both) <= width:
            held = both
        else:
            yield from _pieces(held, width)
            held = word
    yield from _pieces(held, width)


def _pieces(word: str, width: int) -> Iterable[str]:
    while cell_len(word) > width:
        head = set_cell_size(word, width).rstrip() or word[:1]
        yield head
        word = word[len(head) :]
    if word:
        yield word
