"""Which event encloses which on a thread, and how much of each is its own time.

All of it by whole-array operations on events sorted by (thread, start, longest first).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_explorer.collectors.events import Bools, Ints

NONE = -1
_BITS = 62
_BLOCK = 1 << 20
Rows = npt.NDArray[np.int32]
"""Row numbers; NONE where there is none."""


@dataclass(frozen=True)
class Nest:
    """Parents and self times of the nested rows; every column has a place for every row."""

    parent: Rows
    """Innermost event that encloses the row; else innermost one open when it began."""
    open_at_start: Rows
    """Innermost event open when the row began, enclosing or not."""
    self_ns: Ints
    """Time in which no later-begun event of the thread ran; 0 for rows outside the nest."""


def nest(start: Ints, duration: Ints, track: Rows, rows: Bools, slack: int = 0) -> Nest:
    """Nest the chosen rows thread by thread.

    Args:
        start: Start of every row, ns.
        duration: Duration of every row, ns; below zero counts as none.
        track: Thread of every row.
        rows: Rows that take part.
        slack: How many ns an inner event may outlast the outer one (rounded time stamps).
    """
    found = Nest(
        np.full(len(start), NONE, np.int32),
        np.full(len(start), NONE, np.int32),
        np.zeros(len(start), np.int64),
    )
    chosen = np.flatnonzero(rows).astype(np.int32)
    for part in _parts(start, duration, track, chosen, slack):
        _nest_part(found, *_timeline(start, duration, track, part, slack), slack)
    return found


def _parts(start: Ints, duration: Ints, track: Rows, rows: Rows, slack: int) -> Iterator[Rows]:
    """All rows at once where one timeline holds all threads, else thread by thread."""
    if len(rows):
        bits = _span_bits(start, duration, rows, slack)
        if int(track.max()).bit_length() + bits <= _BITS:
            yield rows
        else:
            for thread in np.unique(track[rows]).tolist():
                yield rows[track[rows] == thread]


def _span_bits(start: Ints, duration: Ints, rows: Rows, slack: int) -> int:
    """Bits that hold the time from the first start to after the last end."""
    end = start[rows]
    first = int(end.min())
    end += np.maximum(duration[rows], 0)
    return (int(end.max()) - first + 2 + slack).bit_length()


def _timeline(
    start: Ints, duration: Ints, track: Rows, rows: Rows, slack: int
) -> tuple[Rows, Ints, Ints]:
    """Rows by (thread, start, longest first, row), their starts and ends.

    Threads lie one after the other on one timeline, so that no two of them overlap.
    """
    bits = _span_bits(start, duration, rows, slack)
    s = start[rows]
    s -= s.min()
    if (track[rows] != track[rows[0]]).any():
        s |= track[rows].astype(np.int64) << bits
    if not (s[1:] >= s[:-1]).all():
        by_start = np.argsort(s, kind="stable")
        rows, s = rows[by_start], s[by_start]
    _sort_ties(rows, s, duration)
    return rows, s, s + np.maximum(duration[rows], 0)


def _sort_ties(rows: Rows, s: Ints, duration: Ints) -> None:
    """Among rows that begin together put the longest first, in place."""
    same = s[1:] == s[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        places = rows[tied]
        rows[tied] = places[np.lexsort((places, -duration[places], s[tied]))]


def _nest_part(found: Nest, rows: Rows, s: Ints, e: Ints, slack: int) -> None:
    outlasting = _previous_outlasting(s, e, slack)
    found.self_ns[rows] = _self_time(s, e, outlasting)
    opened = _open_at_start(s, e, outlasting, 1 if slack else 0)
    for block in blocks(len(rows)):
        place = np.arange(block.start, block.stop, dtype=np.int32)
        outer = outlasting[block]
        encloses = (outer >= 0) & _covers(s, e, outer, place, slack)
        found.open_at_start[rows[block]] = _to_rows(opened[block], rows)
        found.parent[rows[block]] = _to_rows(np.where(encloses, outer, opened[block]), rows)


def blocks(size: int) -> Iterator[slice]:
    """Stretches that keep temporary arrays small."""
    for first in range(0, size, _BLOCK):
        yield slice(first, min(first + _BLOCK, size))


def _previous_outlasting(s: Ints, e: Ints, slack: int) -> Rows:
    """Nearest earlier event that ends no sooner than this one, by jumps.

    Everything between an event and its candidate ends sooner than the event. Where the
    candidate does too, the candidate's own candidate keeps that true: so candidates may be
    followed before they are final, and the number of rounds grows with the logarithm.
    """
    candidate = np.arange(-1, len(s) - 1, dtype=np.int32)

    def follow(pending: Rows) -> Rows:
        pending = pending[~_covers(s, e, candidate[pending], pending, slack)]
        candidate[pending] = candidate[candidate[pending]]
        return pending[candidate[pending] >= 0]

    for block in blocks(len(s)):
        _settle(np.arange(max(1, block.start), block.stop, dtype=np.int32), follow)
    return candidate


def _settle(pending: Rows, advance: Callable[[Rows], Rows]) -> None:
    """Advance the pending places, block by block, until `advance` returns none of them."""
    while len(pending):
        pending = np.concatenate([advance(pending[block]) for block in blocks(len(pending))])


def _covers(s: Ints, e: Ints, outer: Rows, inner: Rows, slack: int) -> Bools:
    covers: Bools = e[outer] + slack >= e[inner]
    inside = s[inner] < e[outer]
    if slack:
        # where stamps are rounded, an instant at the very end may have been inside
        inside |= (s[inner] == e[inner]) & (s[inner] <= e[outer] + slack)
    return covers & inside


def _open_at_start(s: Ints, e: Ints, outlasting: Rows, late: int) -> Rows:
    """Innermost earlier event still running when each event began, or `late` ns before."""
    found = np.arange(-1, len(s) - 1, dtype=np.int32)

    def follow(pending: Rows) -> Rows:
        pending = pending[e[found[pending]] + late <= s[pending]]
        found[pending] = outlasting[found[pending]]
        return pending[found[pending] >= 0]

    for block in blocks(len(s)):
        _settle(np.arange(max(1, block.start), block.stop, dtype=np.int32), follow)
    return found


def _self_time(s: Ints, e: Ints, outlasting: Rows) -> Ints:
    """Own time of each event, by walking from each start to the next one.

    Every stretch goes to whoever began last among those still running, so the sum over a
    thread is its union.
    """
    own = np.zeros(len(s), np.int64)
    for block in blocks(len(s)):
        running = np.arange(block.start, block.stop, dtype=np.int32)
        until = np.full(len(running), np.iinfo(np.int64).max)
        following = s[block.start + 1 : block.stop + 1]
        until[: len(following)] = following
        at = s[block]
        while len(running):
            stop = np.minimum(e[running], until)
            np.add.at(own, running, np.maximum(stop - at, 0))
            at = np.maximum(at, stop)
            running = outlasting[running]
            going = (running >= 0) & (at < until)
            running, at, until = running[going], at[going], until[going]
    return own


def _to_rows(places: Rows, rows: Rows) -> Rows:
    found: Rows = np.where(places >= 0, rows[places], NONE)
    return found


def nearest(parent: Rows, wanted: Bools, *, include_self: bool = False) -> Rows:
    """Nearest ancestor (or the row itself) that is `wanted`; NONE where there is none."""
    if not wanted.any():
        return np.full_like(parent, NONE)
    # every wanted row points at itself, every other one up; pointers double until they rest
    jump = parent.copy()
    marked = np.flatnonzero(wanted)
    jump[marked] = marked

    def follow(moving: Rows) -> Rows:
        further = jump[jump[moving]]
        moves: Bools = (further != jump[moving]) & (further >= 0)
        jump[moving] = further
        return moving[moves]

    for block in blocks(len(parent)):
        moving = np.flatnonzero(~wanted[block] & (parent[block] >= 0)) + block.start
        _settle(moving.astype(np.int32), follow)
    if include_self:
        return jump
    above: Rows = jump[parent]
    np.copyto(above, NONE, where=parent < 0)
    return above
