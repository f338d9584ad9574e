"""Which event encloses which on a thread, and how much of each is its own time.

All of it by whole-array operations on events sorted by (thread, start, longest first).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_explorer.collectors.events import Bools, Ints

NONE = -1
Rows = npt.NDArray[np.int32]
"""Row numbers; NONE where there is none."""


@dataclass(frozen=True)
class Nest:
    """Parents and self times of the rows it was built from, in all-rows columns."""

    parent: Rows
    """Innermost event that encloses the row; else innermost one open when it began."""
    open_at_start: Rows
    """Innermost event open when the row began, enclosing or not."""
    self_ns: Ints
    """Time in which no later-begun event of the thread ran; 0 for rows outside the nest."""


def nest(start: Ints, end: Ints, track: Rows, rows: Bools, slack: int = 0) -> Nest:
    """Nest the chosen rows thread by thread.

    Args:
        start: Start of every row, ns.
        end: End of every row, ns.
        track: Thread of every row.
        rows: Rows that take part.
        slack: How many ns an inner event may outlast the outer one (rounded time stamps).
    """
    order = _order(start, end, track, np.flatnonzero(rows))
    s, e, t = start[order], end[order], track[order]
    outlasting = _previous_outlasting(s, e, t, slack)
    parent, open_at_start = np.full(len(start), NONE, np.int32), np.full(len(start), NONE, np.int32)
    self_ns = np.zeros(len(start), np.int64)
    opened = _open_at_start(s, e + (1 if slack else 0), t, outlasting)
    enclosing = np.where(_encloses(s, e, outlasting, slack), outlasting, opened)
    parent[order] = _to_rows(enclosing, order)
    open_at_start[order] = _to_rows(opened, order)
    self_ns[order] = _self_time(s, e, t, outlasting)
    return Nest(parent, open_at_start, self_ns)


def _order(start: Ints, end: Ints, track: Rows, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Rows by (track, start, longest first, row)."""
    if not len(rows):
        return rows
    first = start[rows].min()
    span_bits = int(start[rows].max() - first).bit_length()
    if int(track.max()).bit_length() + span_bits > 62:
        return rows[np.lexsort((rows, -end[rows], start[rows], track[rows]))]
    key = (track[rows].astype(np.int64) << span_bits) | (start[rows] - first)
    sorted_already = bool((key[1:] >= key[:-1]).all())
    order = np.arange(len(rows)) if sorted_already else np.argsort(key, kind="stable")
    _sort_ties(order, key, end[rows])
    return rows[order]


def _sort_ties(order: npt.NDArray[np.intp], key: Ints, end: Ints) -> None:
    """Among rows with equal keys put the longest first, in place."""
    sorted_key = key[order]
    same = sorted_key[1:] == sorted_key[:-1]
    tied = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    if len(tied):
        places = order[tied]
        order[tied] = places[np.lexsort((places, -end[places], key[places]))]


def _previous_outlasting(s: Ints, e: Ints, t: Rows, slack: int) -> Rows:
    """Nearest earlier event of the thread that ends no sooner than this one, by jumps.

    Everything between an event and its candidate ends sooner than the event. Where the
    candidate does too, the candidate's own candidate keeps that true: so candidates may be
    followed before they are final, and the number of rounds grows with the logarithm.
    """
    candidate = np.arange(-1, len(s) - 1, dtype=np.int32)
    pending = np.arange(len(s))
    while len(pending):
        above = candidate[pending]
        other = (above >= 0) & (t[above] != t[pending])
        candidate[pending[other]] = NONE
        ended = (above >= 0) & ~other & ~_covers(s, e, above, pending, slack)
        pending = pending[ended]
        candidate[pending] = candidate[candidate[pending]]
    return candidate


def _covers(
    s: Ints, e: Ints, outer: npt.NDArray[np.integer], inner: npt.NDArray[np.integer], slack: int
) -> Bools:
    # where stamps are rounded, an instant at the very end may have been inside
    began_inside = (
        s[inner] < e[outer] if not slack else (s[inner] < e[outer]) | (s[inner] == e[inner])
    )
    covers: Bools = began_inside & (e[outer] + slack >= e[inner])
    return covers


def _encloses(s: Ints, e: Ints, outer: Rows, slack: int) -> Bools:
    return (outer >= 0) & _covers(s, e, outer, np.arange(len(s)), slack)


def _open_at_start(s: Ints, e: Ints, t: Rows, outlasting: Rows) -> Rows:
    """Innermost earlier event still running when each event began."""
    found = np.arange(-1, len(s) - 1, dtype=np.int32)
    found[1:][t[1:] != t[:-1]] = NONE
    pending = np.flatnonzero(found >= 0)
    while len(pending):
        above = found[pending]
        pending = pending[e[above] <= s[pending]]
        found[pending] = outlasting[found[pending]]
        pending = pending[found[pending] >= 0]
    return found


def _self_time(s: Ints, e: Ints, t: Rows, outlasting: Rows) -> Ints:
    """Own time of each event, by walking from each start to the next one of its thread.

    Every stretch goes to whoever began last among those still running, so the sum over a
    thread is its union.
    """
    own = np.zeros(len(s), np.int64)
    if not len(s):
        return own
    last = np.concatenate([t[1:] != t[:-1], [True]])
    until = np.where(last, np.iinfo(np.int64).max, np.concatenate([s[1:], [0]]))
    running: npt.NDArray[np.integer] = np.arange(len(s))
    at, place = s.copy(), np.arange(len(s))
    while len(running):
        stop = np.minimum(e[running], until[place])
        gain = np.maximum(stop - at, 0)
        own += np.bincount(running, gain, len(s)).astype(np.int64)
        at = np.maximum(at, stop)
        above = outlasting[running]
        going = (above >= 0) & (at < until[place])
        running, at, place = above[going], at[going], place[going]
    return own


def _to_rows(places: Rows, order: npt.NDArray[np.intp]) -> Rows:
    if not len(order):
        return places
    return np.where(places >= 0, order[places], NONE).astype(np.int32)


def nearest(parent: Rows, wanted: Bools, *, include_self: bool = False) -> Rows:
    """Nearest ancestor (or the row itself) that is `wanted`; NONE where there is none."""
    step = np.where(parent >= 0, parent, NONE).astype(np.int32)
    # every row points at itself when wanted, else up; pointers are doubled until they rest
    rows = np.arange(len(parent), dtype=np.int32)
    jump = np.where(wanted, rows, step)
    while True:
        valid = jump >= 0
        further = np.where(valid, jump[jump], NONE)
        if np.array_equal(further, jump):
            break
        jump = further
    if include_self:
        return jump
    return np.where(step >= 0, jump[step], NONE).astype(np.int32)
