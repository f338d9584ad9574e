"""How every front end writes a number, a share, a name: once, here."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

ELLIPSIS = "…"
UNKNOWN = "unknown"

_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
_SI = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"), (1, ""))
_EIGHTHS = " ▏▎▍▌▋▊▉"

_ASCII = str.maketrans("…·→█▉▊▋▌▍▎▏░●▲✓≈✗", "~->#####....!*+~x")
"""One character for one, so that a laid-out page keeps its columns."""


def plain(text: str) -> str:
    """The text without any of our own glyphs outside ASCII; names keep theirs."""
    return text.translate(_ASCII)


def duration(ns: float | None) -> str:
    """`12.3 ms`: three significant digits, unit by size."""
    if ns is None:
        return UNKNOWN
    size, unit = _time_unit(ns)
    return f"{digits(ns / size)} {unit}"


def signed_duration(ns: float | None) -> str:
    """`+12.3 ms`: a difference."""
    return UNKNOWN if ns is None else f"{'+' if ns >= 0 else '-'}{duration(abs(ns))}"


def signed_share(part: float | None) -> str:
    """`+14.7 %`: a difference over what it is a part of."""
    return UNKNOWN if part is None else f"{part * 100:+,.1f} %"


def duration_range(low_ns: float | None, high_ns: float | None) -> str:
    """`0.80-1.92 ms`: both ends in one unit; one number where they read the same."""
    if low_ns is None or high_ns is None:
        return duration(low_ns if high_ns is None else high_ns)
    size, unit = _time_unit(high_ns)
    low, high = digits(low_ns / size), digits(high_ns / size)
    return f"{high} {unit}" if low == high else f"{low}-{high} {unit}"


def bytes_(count: float | None) -> str:
    """`1.21 GB`: powers of 1000, as bandwidths are stated."""
    return _scaled(count, "B")


def bandwidth(bytes_per_s: float | None) -> str:
    """`3.35 TB/s`."""
    return _scaled(bytes_per_s, "B/s")


def flops(count: float | None) -> str:
    """`4.20 TFLOP`."""
    return _scaled(count, "FLOP")


def flop_rate(per_s: float | None) -> str:
    """`989 TFLOP/s`."""
    return _scaled(per_s, "FLOP/s")


def count(number: float | None) -> str:
    """`1,234,567`."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def share(part: float | None) -> str:
    """`61 %`; a share too small for that is `<1 %`, never 0."""
    if part is None:
        return UNKNOWN
    if 0 < part < 0.01:
        return "<1 %"
    return f"{part * 100:.0f} %"


def bar(part: float | None, width: int) -> str:
    """`██████▌░░░░`: a share from 0 to 1 in `width` cells."""
    eighths = round(min(max(part or 0.0, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    filled = "█" * full + (_EIGHTHS[rest] if rest else "")
    return filled + "░" * (width - len(filled))


def spark(parts: Sequence[float], width: int) -> list[str]:
    """Bars of several amounts, the largest one filling `width` cells."""
    top = max(parts, default=0.0)
    return [bar(part / top if top else 0.0, width) for part in parts]


def name(text: str, width: int | None = None) -> str:
    """A recorded name, fit to show: control characters escaped, the middle left out if long."""
    shown = "".join(map(_visible, text))
    return shown if width is None else shorten(shown, width)


def shorten(text: str, width: int) -> str:
    """At most `width` cells: the middle goes, since names differ at their ends."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[:width]
    tail = width // 2
    head = width - 1 - tail
    return set_cell_size(text, head).rstrip() + ELLIPSIS + _last_cells(text, tail)


def clip(text: str, width: int) -> str:
    """At most `width` cells: the end goes, as code is read from its start."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + ELLIPSIS


def place(file: str | None, line: int | None, width: int | None = None) -> str:
    """`model.py:42`; a long path loses its middle, never its line."""
    if file is None:
        return ""
    ending = "" if line is None else f":{line}"
    room = None if width is None else max(width - len(ending), 1)
    return name(file, room) + ending


def _last_cells(text: str, width: int) -> str:
    kept = text[-width:]
    while cell_len(kept) > width:
        kept = kept[1:]
    return kept


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode("ascii")


def _time_unit(ns: float) -> tuple[int, str]:
    return next((t for t in _TIMES if abs(ns) >= t[0] * 0.9995), _TIMES[-1])


def _scaled(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    size, prefix = next((s for s in _SI if abs(value) >= s[0] * 0.9995), _SI[-1])
    return f"{digits(value / size)} {prefix}{unit}"


def digits(value: float) -> str:
    """Three significant digits without an exponent; whole numbers stay whole."""
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
