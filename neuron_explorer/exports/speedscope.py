"""`speedscope`: where device and host time went, by source, as a flame graph.

A profile for each device (time of its units of work: source frames, then the op, then the
kernel) and for each rank's host (self time of ops and runtime calls). Stacks with their sums,
not a timeline: that is what `--to perfetto` is for.

The format: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from neuron_explorer import __version__
from neuron_explorer.exports.sink import Sink
from neuron_explorer.exports.window import Part
from neuron_explorer.trace import Trace

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_FRAME = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<name>.*)", re.DOTALL)

_DEVICE = """
SELECT w.rank, w.device AS place, e.stack, w.source_file, w.source_line, w.source_function,
    list_filter([w.op_name, nullif(w.name, w.op_name)], lambda name: name IS NOT NULL) AS inner_,
    sum(w.duration_ns)::BIGINT AS ns
FROM work AS w INNER JOIN events AS e ON w.rank = e.rank AND w.event_id = e.event_id
WHERE w.duration_ns > 0 AND w.event_id IN (SELECT event_id FROM events WHERE {condition})
    AND w.rank IN {ranks}
GROUP BY ALL
"""
_HOST = """
SELECT rank, 'host' AS place, stack, source_file, source_line, source_function,
    [coalesce(name, 'unknown')] AS inner_, sum(self_ns)::BIGINT AS ns
FROM events
WHERE {condition} AND self_ns > 0
    AND ((layer = 'framework' AND kind IN ('op', 'autograd')) OR layer = 'runtime')
GROUP BY ALL
"""


def write_speedscope(trace: Trace, part: Part, out: Sink) -> dict[str, object]:
    """Write the flame graphs; each sums to the time it is of."""
    frames = _Frames()
    found = [*_asked(trace, _DEVICE, part), *_asked(trace, _HOST, part)]
    profiles = [
        _profile(key, rows, frames, many=len(part.ranks) > 1)
        for key, rows in _by_place(found).items()
    ]
    content = {
        "$schema": _SCHEMA,
        "shared": {"frames": frames.all},
        "profiles": profiles,
        "activeProfileIndex": 0,
        "exporter": f"neuron_explorer {__version__}",
    }
    if not profiles:
        del content["activeProfileIndex"]
    out.write(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")
    return {
        "profiles": len(profiles),
        "stacks": len(found),
        "time_ns": sum(row["ns"] for row in found),
    }


class _Frames:
    """Frames without repeats."""

    def __init__(self) -> None:
        self.all: list[dict[str, object]] = []
        self._numbers: dict[tuple[str, str | None, int | None], int] = {}

    def number(self, name: str, file: str | None = None, line: int | None = None) -> int:
        key = (name, file, line)
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            known = {"name": name, "file": file, "line": line}
            self.all.append({k: v for k, v in known.items() if v is not None})
        return self._numbers[key]

    def of(self, row: Mapping[str, Any]) -> list[int]:
        """The row's stack, outermost first: model frames, op, kernel."""
        stack = [self._parsed(frame) for frame in row["stack"] or ()]
        if not stack and row["source_file"] is not None:
            function = row["source_function"] or row["source_file"]
            stack = [self.number(function, row["source_file"], row["source_line"])]
        if not stack:
            stack = [self.number("source unknown")]
        return [*stack, *(self.number(name) for name in row["inner_"])]

    def _parsed(self, frame: str) -> int:
        match = _FRAME.fullmatch(frame)
        if match is None:
            return self.number(frame)
        return self.number(match["name"], match["file"], int(match["line"]))


def _asked(trace: Trace, query: str, part: Part) -> list[dict[str, Any]]:
    ranks = "(" + ", ".join(map(str, part.ranks or (-1,))) + ")"
    return trace.sql(query.format(condition=part.condition, ranks=ranks)).to_pylist()


def _by_place(rows: Iterable[dict[str, Any]]) -> dict[tuple[int, str], list[dict[str, Any]]]:
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["rank"], row["place"] or "device unknown"), []).append(row)
    return dict(sorted(found.items(), key=lambda item: (item[0][1] == "host", item[0])))


def _profile(
    key: tuple[int, str], rows: list[dict[str, Any]], frames: _Frames, *, many: bool
) -> dict[str, object]:
    rank, place = key
    said = "host: self time of ops" if place == "host" else f"{place}: device time"
    stacks = sorted(((frames.of(row), row["ns"]) for row in rows), key=lambda pair: pair[0])
    return {
        "type": "sampled",
        "name": f"rank {rank}, {said}" if many else said,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(ns for _, ns in stacks),
        "samples": [stack for stack, _ in stacks],
        "weights": [ns for _, ns in stacks],
    }
