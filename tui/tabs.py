"""The row of screens with their number keys: whole words, as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from neuron_explorer.tui.text import Piece

if TYPE_CHECKING:
    from neuron_explorer.tui.screen import TraceScreen

_WAYS: Sequence[Callable[[int, type[TraceScreen]], str]] = (
    lambda key, kind: f" {key} {kind.TITLE}",
    lambda key, kind: f"{key} {kind.TITLE}",
    lambda key, kind: f"{key} {kind.SHORT or kind.TITLE}",
    lambda key, kind: f"{key}{kind.SHORT or kind.TITLE}",
)
"""How a tab is written, the roomiest way first."""


def tabs(kinds: Sequence[type[TraceScreen]], shown: str, width: int) -> Iterator[tuple[Piece, str]]:
    """Each tab as it is drawn, with the name of its screen; the one in front stands out."""
    after = " "
    for words, kind in zip(_words(kinds, shown, width), kinds, strict=True):
        here = shown == kind.NAME
        yield (f"{after}{words}{' ' if here else ''}", "accent:fill" if here else "dim"), kind.NAME
        after = "" if here else " "


def _words(kinds: Sequence[type[TraceScreen]], shown: str, width: int) -> list[str]:
    """All in the roomiest way that fits, else only those nearest to the screen in front."""
    for way in _WAYS:
        words = [way(place % 10, kind) for place, kind in enumerate(kinds, 1)]
        if _cells(words) <= width:
            return words
    front = next((place for place, kind in enumerate(kinds) if shown == kind.NAME), 0)
    words = [str(place % 10) for place in range(1, len(kinds) + 1)]
    for place in sorted(range(len(kinds)), key=lambda place: abs(place - front)):
        longer = f"{words[place]} {kinds[place].SHORT or kinds[place].TITLE}"
        more = [*words[:place], longer, *words[place + 1 :]]
        if place != front and _cells(more) > width:
            break
        words = more
    return words


def _cells(words: Sequence[str]) -> int:
    return 1 + sum(len(each) + 1 for each in words)
