"""What the saving of one finding is worth to the step.

An analyzer says how much time of the work at its events goes. The step gains that only where the
device sets the pace (`work_pace`); elsewhere it hides behind the host, and only launches and host
time that go with it count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb

from neuron_explorer.analyzers.found import Found
from neuron_explorer.findings import Finding

_HIDDEN_AT_LEAST = 0.005
_SMALL_SHARE = 0.01
"""A warning that is worth less of the span than this, once it is the step's, is info."""

_CPU_SPREAD = 0.25
"""A CPU takes so much longer or shorter for the same op in another run: caches, page faults, other
processes and the recorder itself. Chosen on the pairs of `make score`, where 16 of 18 then gained
what they were promised; of 13 pairs written before they were scored, 7."""

_WHOLE = frozenset(
    {
        *("exposed_ns", "extra_ns", "gap_ns", "host_ns", "pause_ns", "taken_ns", "wait_ns"),
    }
)
"""Columns that say how much time a finding is about."""

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


@dataclass(frozen=True)
class Spans:
    """How long was recorded, by rank."""

    ns: Mapping[int, int | None]
    on_a_cpu: frozenset[int]
    """Ranks without an accelerator."""
    slowed: frozenset[int]
    """Ranks whose capture followed every Python call, which makes the host slow."""


def paced(local: duckdb.DuckDBPyConnection, found: Sequence[Found], spans: Spans) -> list[Finding]:
    """The findings with savings of the step; their evidence keeps those of the device.

    Args:
        local: Holds the tables `claims`, `found` and `units`.
        found: What they are about, in the order of their numbers there.
        spans: How long each rank was recorded.
    """
    findings = [each.finding for each in found]
    for number, total, host, unknown, sure, likely in local.execute(_SHARES).fetchall():
        if not total:
            continue
        each = found[number]
        rank = each.finding.rank or 0
        share = _Shares(
            host=float(host or 0) / float(total),
            unknown=float(unknown or 0) / float(total),
            sure=float(sure or 0) / float(total),
            likely=float(likely or 0) / float(total),
            slowed=rank in spans.slowed,
        )
        findings[number] = _demoted(_gained(each, share), each.finding, spans.ns.get(rank))
    return findings


def of_a_cpu(findings: Sequence[Finding], spans: Spans) -> list[Finding]:
    """Bounds of what was measured on a CPU, as wide as CPU times stray; no more than the span."""
    return [
        _spread(finding, spans.ns[finding.rank or 0])
        if finding.figures == "measured" and (finding.rank or 0) in spans.on_a_cpu
        else finding
        for finding in findings
    ]


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
