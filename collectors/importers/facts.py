"""What stands beside the events of a Chrome trace: devices, clock, capture options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_LARGE = frozenset({"deviceProperties", "traceEvents", "metadata"})
_FIRST_TOO_LATE = 1 << 62
"""A base from which no time stamp can be told: the year 2116."""


@dataclass(frozen=True)
class HeaderFacts:
    """Facts of one file's header."""

    base_ns: int
    """Unix time of time stamp 0, ns; 0 where stamps are absolute or the base is unknown."""
    rank: int
    rank_via: str
    header: Mapping[str, Any]

    def metadata(self) -> dict[str, Any]:
        """Values of the file-level metadata keys that the header decides."""
        return {
            "devices": _devices(self.header),
            "environment": {k: v for k, v in self.header.items() if k not in _LARGE},
            "capture": {name: _flag(self.header.get(name)) for name in _OPTIONS},
            "clock": {
                "base_ns": self.base_ns or None,
                "unit": "decimal microseconds",
                "rank_via": self.rank_via,
            },
            "dropped": _dropped(self.header),
        }


def read_facts(header: Mapping[str, Any], rank: int | None) -> HeaderFacts:
    """Facts of a header; `rank` is used where it names none."""
    base = _integer(header.get("baseTimeNanoseconds")) or 0
    distributed = header.get("distributedInfo")
    named = _integer(distributed.get("rank")) if isinstance(distributed, Mapping) else None
    if named is not None and 0 <= named < 1 << 31:
        return HeaderFacts(base, named, "distributedInfo", header)
    return HeaderFacts(base, rank or 0, "file order" if rank is not None else "assumed", header)


def _devices(header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`deviceProperties` as recorded; an empty list where there are none."""
    found = header.get("deviceProperties")
    return [d for d in found if isinstance(d, dict)] if isinstance(found, list) else []


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if abs(number) < _FIRST_TOO_LATE else None


def _flag(value: object) -> bool | None:
    return None if value is None else bool(value)


def _dropped(header: Mapping[str, Any]) -> dict[str, Any]:
    """Notes of the profiler about itself: Kineto's WARNING and ERROR lists."""
    return {key.lower(): header[key] for key in ("WARNING", "ERROR") if key in header}
