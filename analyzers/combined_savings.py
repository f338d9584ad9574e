"""What all savings are worth together: two findings about the same events save their time once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb

from neuron_explorer.analyzers.found import Found, keep_found
from neuron_explorer.findings import Combined, Finding

_SLOTS = """
CREATE TABLE slots AS
WITH placed AS (
    SELECT
        c.finding,
        c.rank,
        f.low,
        f.high,
        unnest(
            CASE
                WHEN g.unit_id IS NOT NULL
                    THEN [{'slot': 'gap', 'id': g.unit_id, 'weight': g.weight}]
                WHEN u.event_id IS NULL
                    THEN [{'slot': 'event', 'id': c.event_id, 'weight': 1}]
                WHEN f.acts_on = 'gaps'
                    THEN [{'slot': 'gap', 'id': u.event_id, 'weight': u.idle_before_ns}]
                WHEN f.acts_on = 'stretch'
                    THEN [
                        {'slot': 'busy', 'id': u.event_id, 'weight': u.duration_ns},
                        {'slot': 'gap', 'id': u.event_id, 'weight': u.idle_before_ns}
                    ]
                ELSE [{'slot': 'busy', 'id': u.event_id, 'weight': u.duration_ns}]
            END
        ) AS place
    FROM claims AS c
    INNER JOIN found AS f ON c.finding = f.finding
    LEFT JOIN units AS u ON c.rank = u.rank AND c.event_id = u.event_id
    LEFT JOIN in_gaps AS g
        ON c.rank = g.rank AND c.event_id = g.event_id AND u.event_id IS NULL
    WHERE f.high > 0
)

SELECT
    finding,
    rank,
    place.slot AS slot,
    place.id AS id,
    low,
    high::DOUBLE * place.weight
    / nullif(sum(place.weight) OVER (PARTITION BY finding), 0) AS part
FROM placed
WHERE place.weight > 0
"""
_HIGHEST = """
SELECT p.rank, sum(p.part) AS high
FROM (SELECT rank, slot, id, max(part) AS part FROM slots GROUP BY rank, slot, id) AS p
GROUP BY p.rank
"""
_SHARED = """
SELECT DISTINCT a.finding AS one, b.finding AS other
FROM slots AS a
INNER JOIN slots AS b
    ON a.rank = b.rank AND a.slot = b.slot AND a.id = b.id AND a.finding < b.finding
WHERE a.low > 0 AND b.low > 0
"""


def combined(
    local: duckdb.DuckDBPyConnection,
    found: Sequence[Found],
    findings: Sequence[Finding],
    spans: Mapping[int, int | None],
    figures: str,
) -> Combined:
    """Each ns of the span is saved at most once, and ranks save side by side.

    Args:
        local: Holds the tables `claims`, `units` and `in_gaps`.
        found: What the findings act on, in the order of their numbers there.
        findings: They, with savings of the step.
        spans: What these are parts of, by rank (ns).
        figures: measured or modelled: findings of another sort count as without a saving.
    """
    counted = [f if f.figures == figures else replace(f, saving_high_ns=None) for f in findings]
    keep_found(local, [each.acts_on for each in found], counted)
    local.execute("DROP TABLE IF EXISTS slots")
    local.execute(_SLOTS)
    known = [f for f in counted if f.saving_high_ns]
    union = {rank: round(float(high)) for rank, high in local.execute(_HIGHEST).fetchall()}
    placeless = _sums([f for f in known if not f.event_ids])
    high = max(
        min(
            max(union.get(rank, 0) + placeless.get(rank, 0), *(_highs(known, rank))),
            spans.get(rank) or sum(_highs(known, rank)),
        )
        for rank in {f.rank or 0 for f in known}
    )
    shared = {frozenset(pair) for pair in local.execute(_SHARED).fetchall()}
    lows = _disjoint_lows(counted, shared)
    return Combined(
        low_ns=min(high, *(lows.get(rank, 0) for rank in spans or {0: 0})),
        high_ns=high,
        span_ns=max((ns for ns in spans.values() if ns is not None), default=None),
        findings=len(known),
        unknown=sum(f.figures == figures and f.saving_high_ns is None for f in findings),
        figures=figures,
    )


def _highs(findings: Sequence[Finding], rank: int) -> list[int]:
    return [f.saving_high_ns or 0 for f in findings if (f.rank or 0) == rank]


def _sums(findings: Sequence[Finding]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for finding in findings:
        sums[finding.rank or 0] = sums.get(finding.rank or 0, 0) + (finding.saving_high_ns or 0)
    return sums


def _disjoint_lows(findings: Sequence[Finding], shared: set[frozenset[int]]) -> dict[int, int]:
    """Per rank the sum of lows of findings that share no time, the largest first."""
    taken: list[int] = []
    sums: dict[int, int] = {}
    order = sorted(range(len(findings)), key=lambda n: -(findings[n].saving_low_ns or 0))
    for number in order:
        finding = findings[number]
        low = finding.saving_low_ns or 0
        if low <= 0 or not finding.saving_high_ns:
            continue
        if any(frozenset((number, other)) in shared for other in taken):
            continue
        taken.append(number)
        sums[finding.rank or 0] = sums.get(finding.rank or 0, 0) + low
    return sums
