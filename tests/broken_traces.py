"""Builders of broken trace texts, and one way to read them through the scanner."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.scanner import EventScanner, UnescapedFileError

GOOD = b'{"ph":"X","cat":"kernel","name":"good","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"id":1}}'


def in_object(*events: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """`{"traceEvents":[...]}` with the events as they are."""
    return b"{" + before + b'"traceEvents":[' + b",".join(events) + b"]" + after + b"}"


def named(name: bytes) -> bytes:
    """An event whose name is these bytes between quotes, not escaped."""
    return b'{"ph":"X","cat":"op","name":"' + name + b'","pid":1,"tid":2,"ts":3,"dur":4}'


def beside_good(*events: bytes) -> bytes:
    """The events, each between good ones."""
    parts = [GOOD]
    for event in events:
        parts += [event, GOOD]
    return in_object(*parts)


@dataclass(frozen=True)
class Scanned:
    """What the scanner made of a text."""

    raw: list[bytes]
    header: dict[str, Any]
    issues: list[dict[str, Any]]
    closed: bool
    truncated: bool
    last_offset: int | None

    @property
    def events(self) -> list[Any]:
        return [json.loads(event, parse_constant=_refuse) for event in self.raw]

    @property
    def others(self) -> list[Any]:
        """Events but the good ones."""
        return [json.loads(event) for event in self.raw if event != GOOD]

    @property
    def good(self) -> int:
        return self.raw.count(GOOD)

    @property
    def kinds(self) -> dict[str, int]:
        return {issue["kind"]: issue["count"] for issue in self.issues}


def scanned(data: bytes, *, sizes: list[int] | None = None, unescaped: bool = False) -> Scanned:
    """Scans `data` in pieces of these sizes (the last one over and over), again if unescaped."""
    try:
        return _scan(data, sizes or [1 << 20], unescaped=unescaped)
    except UnescapedFileError:
        return _scan(data, sizes or [1 << 20], unescaped=True)


def _scan(data: bytes, sizes: list[int], *, unescaped: bool) -> Scanned:
    issues = IssueLog()
    scanner = EventScanner(issues, unescaped=unescaped)
    raw: list[bytes] = []
    position = turn = 0
    while position < len(data):
        size = sizes[min(turn, len(sizes) - 1)]
        raw += scanner.feed(data[position : position + size])
        position += size
        turn += 1
    raw += scanner.finish()
    return Scanned(
        raw,
        scanner.header,
        issues.records(),
        scanner.closed,
        scanner.truncated,
        scanner.last_offset,
    )


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
