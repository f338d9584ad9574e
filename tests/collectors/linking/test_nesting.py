"""Nesting against the definition, written out the slow way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer.collectors.linking.nesting import NONE, Nest, nearest, nest

Interval = tuple[int, int, int]

intervals = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 25), st.integers(0, 2)), max_size=14
)


def nested(rows: list[Interval], slack: int = 0) -> Nest:
    """Nest of (start, duration, thread) rows."""
    start = np.array([s for s, _, _ in rows], np.int64)
    duration = np.array([d for _, d, _ in rows], np.int64)
    track = np.array([t for _, _, t in rows], np.int32)
    return nest(start, duration, track, np.ones(len(rows), np.bool_), slack)


def before(rows: list[Interval], inner: int) -> list[int]:
    """Rows of the same thread that come first, in the order (start, longest first, row)."""

    def key(row: int) -> tuple[int, int, int]:
        start, duration, _ = rows[row]
        return start, -duration, row

    same = [r for r in range(len(rows)) if rows[r][2] == rows[inner][2] and key(r) < key(inner)]
    return sorted(same, key=key)


def expected_parent(rows: list[Interval], inner: int) -> int:
    start, end = rows[inner][0], rows[inner][0] + rows[inner][1]
    running = [r for r in before(rows, inner) if rows[r][0] + rows[r][1] > start]
    enclosing = [r for r in running if rows[r][0] + rows[r][1] >= end]
    return (enclosing or running or [NONE])[-1]


@given(intervals)
def test_parent_is_the_innermost_that_encloses_else_the_innermost_open(
    rows: list[Interval],
) -> None:
    found = nested(rows)
    assert found.parent.tolist() == [expected_parent(rows, row) for row in range(len(rows))]


@given(intervals)
def test_self_time_goes_to_whoever_began_last(rows: list[Interval]) -> None:
    expected = [0] * len(rows)
    for thread in {t for _, _, t in rows}:
        for instant in range(60):
            running = [
                r for r, (s, d, t) in enumerate(rows) if t == thread and s <= instant < s + d
            ]
            if running:
                latest = max(running, key=lambda r: (rows[r][0], -rows[r][1], r))
                expected[latest] += 1
    assert nested(rows).self_ns.tolist() == expected


@given(intervals)
def test_self_times_sum_to_the_union(rows: list[Interval]) -> None:
    found = nested(rows)
    covered = {(t, i) for s, d, t in rows for i in range(s, s + d)}
    assert found.self_ns.sum() == len(covered)
    assert (found.self_ns >= 0).all()


@given(intervals, st.permutations(range(14)))
def test_a_child_may_be_written_before_its_parent(rows: list[Interval], order: list[int]) -> None:
    distinct = list(dict.fromkeys(rows))
    shuffled = [distinct[place] for place in order if place < len(distinct)]
    straight, mixed = nested(distinct), nested(shuffled)
    parents = {
        row: None if p == NONE else distinct[p]
        for row, p in zip(distinct, straight.parent.tolist(), strict=True)
    }
    assert parents == {
        row: None if p == NONE else shuffled[p]
        for row, p in zip(shuffled, mixed.parent.tolist(), strict=True)
    }


def test_ranges_that_do_not_nest_keep_their_own_time() -> None:
    found = nested([(0, 100, 0), (50, 70, 0)])
    assert found.self_ns.tolist() == [50, 70]


def test_rounded_stamps_may_outlast_their_parent_by_the_slack() -> None:
    rows = [(0, 100_000, 0), (10_000, 91_000, 0)]
    assert nested(rows, slack=1000).parent.tolist() == [NONE, 0]


def test_huge_spans_sort_without_packing() -> None:
    rows = [(0, 5, 0), (1 << 61, 10, 0), ((1 << 61) + 1, 2, 0)]
    assert nested(rows).parent.tolist() == [NONE, NONE, 1]


@given(st.lists(st.integers(-1, 12), max_size=13), st.sets(st.integers(0, 12)))
def test_nearest_follows_parents(parents: list[int], wanted: set[int]) -> None:
    # a parent comes before its child here, so there is no cycle
    parent = [p if p < row else NONE for row, p in enumerate(parents)]
    marks = np.array([row in wanted for row in range(len(parent))], np.bool_)
    found = nearest(np.array(parent, np.int32), marks)
    for row in range(len(parent)):
        above = parent[row]
        while above != NONE and above not in wanted:
            above = parent[above]
        assert found[row] == above
