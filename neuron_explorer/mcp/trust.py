"""How far the answers about a trace can be relied on, in the few figures each of them carries."""

from __future__ import annotations

from typing import Literal

from neuron_explorer.mcp.answers import Trust
from neuron_explorer.mcp.opened import OpenTrace
from neuron_explorer.reports.overview import Overview

_PROBLEMS = 5

_COVERAGE = """
SELECT
    sum(duration_ns) FILTER (WHERE bytes IS NOT NULL AND kind <> 'collective')
    / nullif(sum(duration_ns) FILTER (WHERE kind <> 'collective'), 0) AS cost,
    sum(duration_ns) FILTER (WHERE source_file IS NOT NULL) / nullif(sum(duration_ns), 0) AS source,
    sum(duration_ns) AS total
FROM work
"""


def trust_in(opened: OpenTrace) -> Trust:
    """Health, coverage, and whether times and floors are measured or modelled."""
    seen = opened.seen()
    (row,) = opened.trace().sql(_COVERAGE).to_pylist()
    worked = bool(row["total"])
    return Trust(
        health=_health(seen),
        problems=_problems(seen),
        # of some device time, none of it known is 0; without any it is unknown
        cost_coverage=_part(row["cost"], known=worked),
        source_coverage=_part(row["source"], known=worked),
        times="modelled" if seen.modelled is not None and not seen.devices else "measured",
        floors=_floors(seen),
    )


def _health(seen: Overview) -> Literal["ok", "warn", "bad"]:
    found = seen.status
    return "bad" if found == "bad" else "warn" if found == "warn" else "ok"


def _problems(seen: Overview) -> list[str]:
    said = [f"{row['check_name']}: {row['message']}" for row in seen.health if row["message"]]
    if seen.truncated:
        said.insert(0, "the file is cut off: what came after is missing")
    distinct = list(dict.fromkeys(said))
    more = len(distinct) - _PROBLEMS
    return distinct[:_PROBLEMS] + ([f"and {more} more: see the view health"] if more > 0 else [])


def _part(share: float | None, *, known: bool) -> float | None:
    return round(share or 0.0, 4) if known else None


def _floors(seen: Overview) -> Literal["of the recorded chip", "modelled", "unknown chip"]:
    if any(device["modelled"] for device in seen.devices):
        return "modelled"
    if all(device["chip"] is None for device in seen.devices):
        return "unknown chip"
    return "of the recorded chip"
