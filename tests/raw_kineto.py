"""A shared trace read as plain JSON, so that answers can be checked without any code of ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class RawKineto:
    """Events as torch wrote them; times exact, in nanoseconds."""

    def __init__(self, path: Path) -> None:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        self.events: list[Event] = json.loads(text, parse_float=Decimal)["traceEvents"]

    def of(self, *categories: str) -> list[Event]:
        return [e for e in self.events if e.get("cat") in categories and e["ph"] != "f"]

    @cached_property
    def work(self) -> list[Event]:
        return self.of("kernel", "gpu_memcpy", "gpu_memset")

    @cached_property
    def op_of_work(self) -> dict[int, Event]:
        """The innermost op around the launch of each unit of work, by the unit's place."""
        calls = {e["args"]["correlation"]: e for e in self.of("cuda_runtime", "cuda_driver")}
        ops = self.of("cpu_op")
        found = {}
        for place, unit in enumerate(self.work):
            call = calls.get(unit["args"]["correlation"])
            around = [op for op in ops if call is not None and encloses(op, call)]
            if around:
                found[place] = min(around, key=duration)
        return found

    def frame_of_work(self, mine: Callable[[str], bool]) -> dict[int, str]:
        """The innermost Python frame of `mine` around the launch of each unit of work."""
        calls = {e["args"]["correlation"]: e for e in self.of("cuda_runtime", "cuda_driver")}
        frames = [e for e in self.of("python_function") if mine(e["name"])]
        found = {}
        for place, unit in enumerate(self.work):
            call = calls.get(unit["args"]["correlation"])
            around = [f for f in frames if call is not None and encloses(f, call)]
            if around:
                found[place] = min(around, key=duration)["name"]
        return found


def start(event: Event) -> int:
    return int(event["ts"] * 1000)


def duration(event: Event) -> int:
    return int(event["dur"] * 1000)


def encloses(outer: Event, inner: Event) -> bool:
    return (
        (outer["pid"], outer["tid"]) == (inner["pid"], inner["tid"])
        and start(outer) <= start(inner)
        and start(outer) + duration(outer) >= start(inner) + duration(inner)
    )


def union(events: Iterable[Event]) -> int:
    """Time in which at least one of them ran (ns)."""
    covered, end = 0, 0
    for begin, finish in sorted((start(e), start(e) + duration(e)) for e in events):
        covered += max(0, finish - max(begin, end))
        end = max(end, finish)
    return covered
