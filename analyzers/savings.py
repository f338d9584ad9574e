"""What a saving is worth to the step, and what all of them are worth together.

An analyzer says how much time of the work at its events goes. The step gains that only where the
device sets the pace (`work_pace`); elsewhere it hides behind the host, and only launches and host
time that go with it count. And two findings about the same events save their time once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from neuron_explorer.analyzers.header import Analyzer
from neuron_explorer.findings import Combined, Finding
from neuron_explorer.trace import Trace

_HIDDEN_AT_LEAST = 0.005
_SMALL_SHARE = 0.01
"""A warning that is worth less of the span than this, once it is the step's, is info."""

_CPU_SPREAD = 0.25
"""A CPU takes so much longer or shorter for the same op in another run: caches, page faults, other
processes and the recorder itself. Chosen on the pairs of `make score`, where 16 of 18 then gained
what they were promised; of 13 pairs written before they were scored, 7."""

_WHOLE = frozenset(
    {"exposed_ns", "extra_ns", "gap_ns", "host_ns", "pause_ns", "taken_ns", "wait_ns"}
)
"""Columns that say how much time a finding is about."""

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

_SHARES = """
SELECT
    c.finding,
    sum(c.weight) AS total,
    sum(c.weight) FILTER (WHERE c.pace = 'host') AS host,
    sum(c.weight) FILTER (WHERE c.pace = 'unknown') AS unknown,
    sum(c.sure) FILTER (WHERE c.pace = 'device') AS sure,
    sum(c.likely) FILTER (WHERE c.pace <> 'host') AS likely
FROM (
    SELECT
        a.finding,
        u.pace,
        if(f.acts_on = 'exposed', u.exposed_ns, u.duration_ns) AS weight,
        if(f.acts_on = 'exposed', u.exposed_ns, u.alone_ns) AS sure,
        CASE
            WHEN f.acts_on = 'exposed' THEN u.exposed_ns
            WHEN u.critical THEN u.duration_ns
            ELSE u.alone_ns
        END AS likely
    FROM claims AS a
    INNER JOIN found AS f ON a.finding = f.finding AND f.acts_on IN ('device', 'exposed')
    INNER JOIN units AS u ON a.rank = u.rank AND a.event_id = u.event_id
) AS c
GROUP BY c.finding
"""
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


@dataclass(frozen=True)
class Found:
    """A finding with what its row says beyond it."""

    finding: Finding
    acts_on: str
    host_low_ns: int
    """Host time that goes too: counts where the host sets the pace (ns)."""
    host_high_ns: int


def found_in(analyzer: Analyzer, findings: Sequence[Finding], table: pa.Table) -> list[Found]:
    """The findings with what only the runner reads from their rows."""
    columns = [
        table.column(name).to_pylist() if name in table.column_names else [None] * len(findings)
        for name in ("host_saving_low_ns", "host_saving_high_ns")
    ]
    return [
        Found(finding, analyzer.acts_on, low or 0, high or 0)
        for finding, low, high in zip(findings, *columns, strict=True)
    ]


def of_the_step(trace: Trace, found: Sequence[Found]) -> tuple[list[Finding], list[Combined]]:
    """The findings with savings of the step, and what they are worth together.

    Savings of device time become what the step gains; the evidence keeps both. There is one
    `Combined` for measured and one for modelled savings, where there are such.
    """
    if not any(each.finding.saving_high_ns for each in found):
        return [each.finding for each in found], []
    with duckdb.connect() as local:
        _fill(local, trace, found)
        findings = _of_a_cpu(trace, _paced(local, trace, found))
        combined = [
            _combined(local, trace, findings, found, figures)
            for figures in ("measured", "modelled")
            if any(f.figures == figures and f.saving_high_ns for f in findings)
        ]
    return findings, combined


def _fill(local: duckdb.DuckDBPyConnection, trace: Trace, found: Sequence[Found]) -> None:
    numbers: list[int] = []
    ranks: list[int] = []
    ids: list[int] = []
    for number, each in enumerate(found):
        count = len(each.finding.event_ids) if each.finding.saving_high_ns else 0
        numbers += [number] * count
        ranks += [each.finding.rank or 0] * count
        ids += each.finding.event_ids[:count]
    claims = pa.table(
        {
            "finding": pa.array(numbers, pa.int32()),
            "rank": pa.array(ranks, pa.int32()),
            "event_id": pa.array(ids, pa.int64()),
        }
    )
    _keep(local, "claims", claims)
    _keep(local, "units", trace.sql(_UNITS))
    _keep(local, "in_gaps", trace.sql(_IN_GAPS))
    _keep_found(local, [each.acts_on for each in found], [each.finding for each in found])


def _keep_found(
    local: duckdb.DuckDBPyConnection, acts_on: Sequence[str], findings: Sequence[Finding]
) -> None:
    table = pa.table(
        {
            "finding": pa.array(range(len(findings)), pa.int32()),
            "acts_on": pa.array(acts_on, pa.string()),
            "low": pa.array([f.saving_low_ns or 0 for f in findings], pa.int64()),
            "high": pa.array([f.saving_high_ns or 0 for f in findings], pa.int64()),
        }
    )
    local.execute("DROP TABLE IF EXISTS found")
    _keep(local, "found", table)


def _keep(local: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    local.register("incoming", table)
    local.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
    local.unregister("incoming")


# ---- one finding ----------------------------------------------------------


def _paced(local: duckdb.DuckDBPyConnection, trace: Trace, found: Sequence[Found]) -> list[Finding]:
    findings = [each.finding for each in found]
    slowed = {row["rank"] for row in trace.sql(_SLOWED).to_pylist()}
    spans = {row["rank"]: row["span_ns"] for row in trace.sql(_SPANS).to_pylist()}
    for number, total, host, unknown, sure, likely in local.sql(_SHARES).fetchall():
        if not total:
            continue
        each = found[number]
        rank = each.finding.rank or 0
        share = _Shares(
            host=float(host or 0) / float(total),
            unknown=float(unknown or 0) / float(total),
            sure=float(sure or 0) / float(total),
            likely=float(likely or 0) / float(total),
            slowed=rank in slowed,
        )
        findings[number] = _demoted(_gained(each, share), each.finding, spans.get(rank))
    return findings


@dataclass(frozen=True)
class _Shares:
    """Parts of the time of a finding's events, 0 to 1."""

    host: float
    """Where the host sets the pace."""
    unknown: float
    sure: float
    """Where the device does, and nothing else runs on it."""
    likely: float
    """Where the host does not, on the critical queue or alone."""
    slowed: bool
    """Whether the capture itself slows the host: without it the device may set the pace."""


def _gained(each: Found, share: _Shares) -> Finding:
    finding = each.finding
    low, high = finding.saving_low_ns, finding.saving_high_ns
    if high is None or share.sure > 1 - _HIDDEN_AT_LEAST:
        return finding
    hidden = round(share.host * each.host_high_ns)
    gained = round(share.likely * high) + hidden
    if share.slowed:
        gained = max(gained, high)
    if low is not None:
        low = min(round(share.sure * low + share.host * each.host_low_ns), gained)
    kept = {"device_saving_low_ns": finding.saving_low_ns, "device_saving_high_ns": high}
    return replace(
        finding,
        saving_low_ns=low,
        saving_high_ns=gained,
        saving_basis=f"{finding.saving_basis}; of the step: {_why(share, hidden)}",
        evidence={**finding.evidence, **kept},
    )


def _why(share: _Shares, hidden: int) -> str:
    if share.unknown > 0:
        return "no launches were recorded, so whether it sets the pace is unknown (low: 0)"
    said = []
    if share.host >= _HIDDEN_AT_LEAST:
        counts = "launches and host time that go count there" if hidden else "it gains nothing"
        said.append(f"{share.host:.0%} of this work hides behind the host, {counts}")
        if share.slowed:
            said.append("unless only the capture made the host so slow (high)")
    if share.sure < 1 - share.host - _HIDDEN_AT_LEAST:
        covered = max(0.0, 1 - share.host - share.sure)
        said.append(f"during {covered:.0%} of it other work of the device ran (low: without)")
    return "; ".join(said)


def _demoted(finding: Finding, before: Finding, span_ns: int | None) -> Finding:
    """No warning about what the step would hardly gain."""
    gained = finding.saving_high_ns
    if finding is before or gained is None or span_ns is None or finding.severity != "warning":
        return finding
    return finding if gained >= _SMALL_SHARE * span_ns else replace(finding, severity="info")


def _of_a_cpu(trace: Trace, findings: Sequence[Finding]) -> list[Finding]:
    """Bounds of what was measured on a CPU, as wide as CPU times stray; no more than the span."""
    spans = {
        row["rank"]: row["span_ns"]
        for row in trace.sql(_SPANS).to_pylist()
        if not row["accelerated"]
    }
    return [
        _spread(finding, spans[finding.rank or 0])
        if finding.figures == "measured" and (finding.rank or 0) in spans
        else finding
        for finding in findings
    ]


def _spread(finding: Finding, span_ns: int | None) -> Finding:
    low, high = finding.saving_low_ns, finding.saving_high_ns
    if not high:
        return finding
    wider = round(min(high * (1 + _CPU_SPREAD), _whole_ns(finding)))
    return replace(
        finding,
        saving_low_ns=None if low is None else round(low * (1 - _CPU_SPREAD)),
        saving_high_ns=wider if span_ns is None else max(high, min(wider, span_ns)),
        saving_basis=f"{finding.saving_basis}; {_CPU_SPREAD:.0%} either way, as CPU times stray",
    )


def _whole_ns(finding: Finding) -> float:
    """All the time that a finding is about, where it says so: more cannot be saved."""
    told = [finding.device_time_ns, *(finding.evidence.get(name) for name in _WHOLE)]
    high = finding.saving_high_ns or 0
    return min((ns for ns in told if isinstance(ns, int) and ns >= high), default=float("inf"))


# ---- all of them ----------------------------------------------------------


def _combined(
    local: duckdb.DuckDBPyConnection,
    trace: Trace,
    findings: Sequence[Finding],
    found: Sequence[Found],
    figures: str,
) -> Combined:
    """Each ns of the span is saved at most once, and ranks save side by side."""
    counted = [f if f.figures == figures else replace(f, saving_high_ns=None) for f in findings]
    _keep_found(local, [each.acts_on for each in found], counted)
    local.execute("DROP TABLE IF EXISTS slots")
    local.execute(_SLOTS)
    spans = {
        row["rank"]: row["span_ns"]
        for row in trace.sql(_SPANS if figures == "measured" else _MODELLED_SPANS).to_pylist()
    }
    known = [f for f in counted if f.saving_high_ns]
    union = {rank: round(float(high)) for rank, high in local.sql(_HIGHEST).fetchall()}
    placeless = _sums([f for f in known if not f.event_ids])
    high = max(
        min(
            max(union.get(rank, 0) + placeless.get(rank, 0), *(_highs(known, rank))),
            spans.get(rank) or sum(_highs(known, rank)),
        )
        for rank in {f.rank or 0 for f in known}
    )
    shared = {frozenset(pair) for pair in local.sql(_SHARED).fetchall()}
    lows = _disjoint_lows(counted, shared)
    span_ns = max(spans.values(), default=None)
    return Combined(
        low_ns=min(high, *(lows.get(rank, 0) for rank in spans or {0: 0})),
        high_ns=high,
        span_ns=span_ns,
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
