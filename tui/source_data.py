"""What the source screen asks: files by cost, the lines of one, and the event of a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.source_files import SourceText, source_text
from neuron_explorer.tui.state import EventKey, Spot
from neuron_explorer.tui.text import Line

_FILES = """
SELECT source_file, CAST(sum(device_ns) AS BIGINT) AS device_ns,
    CAST(sum(host_ns) AS BIGINT) AS host_ns
FROM lines GROUP BY ALL
ORDER BY device_ns DESC NULLS LAST, host_ns DESC NULLS LAST, source_file
"""
_COSTS = """
SELECT
    source_line, any_value(source_function) AS function,
    CAST(sum(host_ns) AS BIGINT) AS host_ns, CAST(sum(device_ns) AS BIGINT) AS device_ns,
    CAST(sum(bytes) AS BIGINT) AS bytes, max_by(bound, device_ns) AS bound
FROM lines WHERE source_file = $file GROUP BY source_line ORDER BY source_line
"""
_ROOF = """
SELECT source_line, sum(floor_ns) / nullif(sum(device_time_ns), 0) AS share
FROM roofline WHERE source_file = $file AND floor_ns IS NOT NULL GROUP BY source_line
"""
_COSTLIEST = """
SELECT rank, event_id FROM roofline WHERE source_file = $file AND source_line = $line
ORDER BY device_time_ns DESC, event_id LIMIT 1
"""
_FIRST_OP = """
SELECT rank, event_id FROM events
WHERE source_file = $file AND source_line = $line AND end_ns IS NOT NULL
ORDER BY self_ns DESC NULLS LAST, event_id LIMIT 1
"""

# What one line caused, the longest first.
_WORK = """
SELECT
    name, count(*) AS events, CAST(sum(device_time_ns) AS BIGINT) AS time_ns, mode(bound) AS bound,
    CAST(sum(bytes) AS BIGINT) AS bytes,
    sum(floor_ns) / nullif(sum(device_time_ns) FILTER (WHERE floor_ns IS NOT NULL), 0) AS share,
    any_value(op_name) AS op_name, count(*) OVER () AS names
FROM roofline WHERE source_file = $file AND source_line = $line
GROUP BY name ORDER BY time_ns DESC, name LIMIT $most
"""
MOST_WORK = 12

NO_SOURCE = (
    "No source lines in this trace. Record with torch.profiler's with_stack=True, or with"
    " neuron_explorer.profile() or neuron-explorer run, which keep exact lines."
)


@dataclass(frozen=True)
class SourceLine:
    """One line of the file: its text where somebody has it, its costs where it has any."""

    number: int
    text: Line | None
    cost: Mapping[str, Any] | None
    share: float | None
    """Floor over time of the work it caused whose floor is known, 0 to 1."""
    gap: bool = False
    """Lines before it are not known."""


def read(ask: Ask, file: str) -> tuple[list[SourceLine], str]:
    """Every line of the file that has text or a cost, and the warning over it."""
    costs = {row["source_line"]: row for row in ask.rows(_COSTS, {"file": file})}
    shares = {row["source_line"]: row["share"] for row in ask.rows(_ROOF, {"file": file})}
    text: SourceText = source_text(ask.trace.metadata.values(), file)
    lines: list[SourceLine] = []
    before = 0
    for number in sorted({*text.lines, *(n for n in costs if n is not None)}):
        gap = number != before + 1 and before > 0
        found = (text.lines.get(number), costs.get(number), shares.get(number))
        lines.append(SourceLine(number, *found, gap=gap))
        before = number
    return lines, text.warning


def work_of(ask: Ask, spot: Spot) -> list[Mapping[str, Any]]:
    """The kernels (on a CPU the ops) that a line caused, added up by name."""
    return list(ask.rows(_WORK, {"file": spot.file, "line": spot.line, "most": MOST_WORK}))


def files(ask: Ask) -> list[Mapping[str, Any]]:
    return list(ask.rows(_FILES))


def event_of(ask: Ask, spot: Spot) -> EventKey | None:
    """The longest work that a line caused; else its longest event on the host."""
    where = {"file": spot.file, "line": spot.line}
    for query in (_COSTLIEST, _FIRST_OP):
        found = ask.rows(query, where)
        if found:
            return EventKey(found[0]["rank"], found[0]["event_id"])
    return None
