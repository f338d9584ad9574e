"""What a saving is worth to a step that nobody records.

Recording lengthens a CPU's steps, and a saving of 40 ms out of 100 is more than 40 % of a step in
which the recorder's 20 ms are none. The bounds stay parts of the recorded span, as all times of a
trace are; they become as large a part of it as the saving may be of the program's own step. The
evidence keeps what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb

from neuron_explorer.analyzers.found import keep_table
from neuron_explorer.analyzers.step_savings import Spans
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

_LEAST, _MOST = 1, 2
"""Recording an op costs so many times the `op_ns` of `recorder_costs`: 0.87 to 2.05 on the eleven
scripts of the labelled set that spend a fifth of their recorded steps or more on it, each step
against the same unrecorded."""

_COSTS = """
SELECT rank, op_ns, events, opened_ns
FROM recorder_costs
WHERE op_ns IS NOT NULL
"""
_OPS_OF_READS = """
SELECT
    w.rank,
    w.event_id,
    count(*) AS ops
FROM events AS w
INNER JOIN events AS o
    ON
        w.rank = o.rank AND w.pid IS NOT DISTINCT FROM o.pid AND w.tid IS NOT DISTINCT FROM o.tid
        AND w.start_ns <= o.start_ns AND w.end_ns > o.start_ns
WHERE
    w.layer = 'host' AND w.kind = 'input_wait'
    AND o.layer = 'framework' AND o.kind IN ('op', 'autograd')
GROUP BY w.rank, w.event_id
"""
_HELD = """
WITH by_rank AS (
    SELECT rank, count(*) AS units
    FROM units
    GROUP BY rank
)

SELECT
    c.finding,
    count(u.event_id) / any_value(b.units) AS of_work,
    coalesce(sum(o.ops), 0)::BIGINT AS ops
FROM claims AS c
INNER JOIN found AS f ON c.finding = f.finding AND f.acts_on <> 'gaps'
LEFT JOIN by_rank AS b ON c.rank = b.rank
LEFT JOIN units AS u ON c.rank = u.rank AND c.event_id = u.event_id
LEFT JOIN ops_of_reads AS o ON c.rank = o.rank AND c.event_id = o.event_id
GROUP BY c.finding
"""


@dataclass(frozen=True)
class _Costs:
    op_ns: int
    events: int
    opened_ns: int


@dataclass(frozen=True)
class _Held:
    """What the recorder took of a finding's time and of the whole span, at `op_ns` an op (ns)."""

    own_ns: float
    all_ns: float
    opened_ns: int
    span_ns: int

    def part(self, high: int, times: int) -> float | None:
        """What a saving of all `high` ns is of an unrecorded span; None where that is not known."""
        own = high - times * self.own_ns
        span = self.span_ns - self.opened_ns - times * self.all_ns
        return min(1.0, own / span) if own > 0 and span > 0 else None


def unrecorded(
    trace: Trace, local: duckdb.DuckDBPyConnection, findings: Sequence[Finding], spans: Spans
) -> list[Finding]:
    """The findings of CPUs with bounds that hold for unrecorded steps too.

    Findings about gaps stay as they are: what recording lines takes of those is not known.

    Args:
        trace: What they were found in.
        local: Holds the tables `claims`, `found` and `units`; gets `ops_of_reads`.
        findings: In the order of their numbers in `claims`.
        spans: How long each rank was recorded.
    """
    if not spans.on_a_cpu:
        return list(findings)
    costs = {row["rank"]: _costs(row) for row in trace.rows(_COSTS)}
    if not costs:
        return list(findings)
    keep_table(local, "ops_of_reads", trace.sql(_OPS_OF_READS))
    changed = list(findings)
    for number, of_work, ops in local.execute(_HELD).fetchall():
        rank = findings[number].rank or 0
        span_ns, cost = spans.ns.get(rank), costs.get(rank)
        if cost is None or not span_ns or rank not in spans.on_a_cpu:
            continue
        if findings[number].figures == "measured":
            held = min(cost.events, (of_work or 0) * cost.events + ops)
            changed[number] = _bounded(findings[number], _held(held, cost, span_ns))
    return changed


def _costs(row: Mapping[str, int]) -> _Costs:
    return _Costs(row["op_ns"], row["events"], row["opened_ns"])


def _held(events: float, cost: _Costs, span_ns: int) -> _Held:
    return _Held(events * cost.op_ns, cost.events * cost.op_ns, cost.opened_ns, span_ns)


def _bounded(finding: Finding, held: _Held) -> Finding:
    low, high = finding.saving_low_ns, finding.saving_high_ns
    if not high:
        return finding
    parts = [held.part(high, times) for times in (_LEAST, _MOST)]
    most = max([high, *(round(part * held.span_ns) for part in parts if part is not None)])
    if low and parts[0] is not None:
        low = min(low, round(low / high * parts[0] * held.span_ns))
    if (low, most) == (finding.saving_low_ns, high):
        return finding
    basis = f"{finding.saving_basis}; as large a part of a step that is not recorded (modelled)"
    kept = {"recorded_saving_low_ns": finding.saving_low_ns, "recorded_saving_high_ns": high}
    return replace(
        finding,
        saving_low_ns=low,
        saving_high_ns=most,
        saving_basis=basis,
        evidence={**finding.evidence, **kept},
    )
