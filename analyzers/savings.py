"""What the savings of a trace's findings are worth to its steps, one by one and all together."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import duckdb

from neuron_explorer.analyzers.combined_savings import combined
from neuron_explorer.analyzers.found import Found, keep_claims, keep_found, keep_table
from neuron_explorer.analyzers.step_savings import Spans, of_a_cpu, paced
from neuron_explorer.analyzers.unrecorded_steps import unrecorded
from neuron_explorer.findings import Combined, Finding
from neuron_explorer.trace import Trace

_UNITS = """
SELECT
    t.rank,
    t.event_id,
    w.duration_ns,
    p.pace,
    x.exposed_ns,
    coalesce(x.alone_ns, w.duration_ns) AS alone_ns,
    coalesce(b.critical_queue = w.queue AND b.critical_device = w.device, TRUE) AS critical,
    t.idle_before_ns
FROM timeline AS t
INNER JOIN work AS w ON t.rank = w.rank AND t.event_id = w.event_id
INNER JOIN work_pace AS p ON t.rank = p.rank AND t.event_id = p.event_id
LEFT JOIN exposed AS x ON t.rank = x.rank AND t.event_id = x.event_id
LEFT JOIN step_bounds AS b ON t.rank = b.rank AND (b.step IS NULL OR w.step = b.step)
"""
_IN_GAPS = """
WITH stops AS (
    SELECT rank, event_id, start_ns, end_ns, 'over' AS how
    FROM events
    WHERE
        (layer = 'host' AND kind IN ('input_wait', 'gc'))
        OR (layer = 'compiler' AND kind = 'compile')
    UNION ALL
    SELECT rank, event_id, start_ns, start_ns + duration_ns AS end_ns, 'behind' AS how
    FROM syncs
)

SELECT
    s.rank,
    s.event_id,
    g.after_event_id AS unit_id,
    if(
        s.how = 'behind',
        g.duration_ns,
        least(s.end_ns, g.end_ns) - greatest(s.start_ns, g.start_ns)
    ) AS weight
FROM stops AS s
INNER JOIN gaps AS g
    ON
        s.rank = g.rank AND g.start_ns <= s.end_ns
        AND if(s.how = 'behind', s.end_ns, s.start_ns) < g.end_ns
WHERE s.end_ns > s.start_ns
"""
_SPANS = "SELECT rank, span_ns, accelerated FROM rank_spans"
_MODELLED_SPANS = "SELECT rank, sum(span_ns)::BIGINT AS span_ns FROM modelled_steps GROUP BY rank"
_SLOWED = "SELECT DISTINCT rank FROM events WHERE layer = 'python'"


def of_the_step(trace: Trace, found: Sequence[Found]) -> tuple[list[Finding], list[Combined]]:
    """The findings with savings of the step, and what they are worth together.

    Savings of device time become what the step gains; the evidence keeps both. There is one
    `Combined` for measured and one for modelled savings, where there are such.
    """
    if not any(each.finding.saving_high_ns for each in found):
        return [_expected(each.finding, each.likely) for each in found], []
    with ThreadPoolExecutor(2) as pool, duckdb.connect() as local:
        units, in_gaps = pool.submit(trace.sql, _UNITS), pool.submit(trace.sql, _IN_GAPS)
        spans = _spans(trace)
        keep_table(local, "units", units.result())
        keep_table(local, "in_gaps", in_gaps.result())
        keep_claims(local, found)
        keep_found(local, [each.acts_on for each in found], [each.finding for each in found])
        bounded = unrecorded(trace, local, of_a_cpu(paced(local, found, spans), spans), spans)
        findings = [
            _expected(finding, each.likely) for finding, each in zip(bounded, found, strict=True)
        ]
        together = [
            combined(
                local,
                found,
                findings,
                spans.ns if figures == "measured" else _modelled_spans(trace),
                figures,
            )
            for figures in ("measured", "modelled")
            if any(f.figures == figures and f.saving_high_ns for f in findings)
        ]
    return findings, together


def _expected(finding: Finding, likely: float) -> Finding:
    """With what is expected between its bounds; an unknown low may be nothing."""
    low, high = finding.saving_low_ns or 0, finding.saving_high_ns
    if high is None:
        return finding
    return replace(finding, saving_likely_ns=round(low + likely * (high - low)))


def _spans(trace: Trace) -> Spans:
    rows = trace.rows(_SPANS)
    return Spans(
        ns={row["rank"]: row["span_ns"] for row in rows},
        on_a_cpu=frozenset(row["rank"] for row in rows if not row["accelerated"]),
        slowed=frozenset(row["rank"] for row in trace.rows(_SLOWED)),
    )


def _modelled_spans(trace: Trace) -> dict[int, int | None]:
    return {row["rank"]: row["span_ns"] for row in trace.rows(_MODELLED_SPANS)}
