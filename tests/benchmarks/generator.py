"""A large Kineto file out of a real one: copies of its events, later in time, with new ids.

python tests/benchmarks/generator.py SOURCE OUTPUT [EVENTS]
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TOP_IDS = frozenset({"id"})
_ARG_IDS = frozenset(
    {
        "External id",
        "correlation",
        "Ev Idx",
        "Record function id",
        "Python id",
        "Python parent id",
        "Sequence number",
    }
)
_ID_STEP = 10_000_000
_GAP_NS = 1_000_000


@dataclass(frozen=True)
class _Template:
    """One event's text in Kineto's own layout, with places for its start and its ids."""

    text: str
    start_ns: int | None
    ids: tuple[int, ...]

    def copy(self, shift_ns: int, id_shift: int) -> str:
        numbers: list[object] = [] if self.start_ns is None else [_us(self.start_ns + shift_ns)]
        numbers += [number + id_shift if number else 0 for number in self.ids]
        return self.text % tuple(numbers)


def generate(source: Path, output: Path, events: int) -> int:
    """Write `events` events made from `source` to `output`; returns its bytes."""
    data = source.read_bytes()
    trace = json.loads(gzip.decompress(data) if source.suffix == ".gz" else data)
    header = {key: value for key, value in trace.items() if key != "traceEvents"}
    with output.open("w", encoding="utf-8") as out:
        out.write("{\n" + json.dumps(header, indent=2)[1:-2] + ',\n  "traceEvents": [\n')
        for place, text in enumerate(_copies(trace["traceEvents"], events)):
            out.write(",\n" + text if place else text)
        out.write("\n  ]}\n")
    return output.stat().st_size


def _copies(source: list[dict[str, Any]], events: int) -> Iterator[str]:
    templates = [_template(event) for event in source]
    # rows that stand at 0 (metadata) say nothing of how long the trace is
    starts = [t.start_ns for t in templates if t.start_ns]
    span = max(starts) - min(starts) + _GAP_NS
    for number in range(events):
        lap, place = divmod(number, len(templates))
        yield templates[place].copy(lap * span, lap * _ID_STEP)


def _template(event: dict[str, Any]) -> _Template:
    ids: list[int] = []
    head = [f'"ph": {_text(event["ph"])}']
    head += [
        f'"{key}": {_text(event[key])}' for key in ("cat", "name", "pid", "tid") if key in event
    ]
    lines = ["  {", "    " + ", ".join(head)]
    start = _ns(event["ts"]) if "ts" in event and event["ph"] != "M" else None
    if "ts" in event:
        lines[-1] += ","
        ts = "%s" if start is not None else _text(event["ts"])
        lines.append(f'    "ts": {ts}' + (f', "dur": {event["dur"]}' if "dur" in event else ""))
    rest = {k: v for k, v in event.items() if k in ("id", "bp", "s")}
    if rest:
        lines[-1] += ", " + ", ".join(
            f'"{k}": {_value(k, v, _TOP_IDS, ids)}' for k, v in rest.items()
        )
    if "args" in event:
        lines[-1] += ","
        args = ",".join(
            f"{_text(k)}: {_value(k, v, _ARG_IDS, ids)}" for k, v in event["args"].items()
        )
        lines += ['    "args": {', "      " + args, "    }"]
    return _Template("\n".join([*lines, "  }"]), start, tuple(ids))


def _value(key: str, value: object, shifted: frozenset[str], ids: list[int]) -> str:
    if key in shifted and type(value) is int:
        ids.append(value)
        return "%d"
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value).replace("%", "%%")


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


if __name__ == "__main__":
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 740_000
    sys.stdout.write(f"{generate(Path(sys.argv[1]), Path(sys.argv[2]), wanted)} bytes\n")
