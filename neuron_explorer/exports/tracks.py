"""Processes and threads of an exported timeline, and how overlapping slices share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuron_explorer.exports.event_json import ON_DEVICE, PLACE
from neuron_explorer.exports.window import Part
from neuron_explorer.trace import Trace

_PLACES = f"""
SELECT {PLACE} AS place, e.rank, {ON_DEVICE} AS on_device, e.kind = 'device_annotation' AS marks,
    e.pid, e.pid_raw, e.tid, e.tid_raw, min(e.thread_name) AS thread_name,
    e.device, e.queue, e.stream, count(*) AS events
FROM events AS e WHERE {{condition}} GROUP BY ALL
ORDER BY e.rank, on_device DESC, e.device, e.queue, marks, e.pid, events DESC, e.tid, place
"""


@dataclass
class Track:
    """One thread or queue as a viewer shows it."""

    pid: int | str
    tid: int | str
    process: str
    """Name of the process."""
    name: str
    """Name of the thread."""
    stacks: list[list[int]] = field(default_factory=list)
    """Ends of the open slices of the track and of each further one beside it."""
    more: list[int | str] = field(default_factory=list)
    """Thread ids of the further ones."""


def places(trace: Trace, part: Part) -> Sequence[Mapping[str, Any]]:
    """Every thread and queue with an event in the part, devices first."""
    return trace.sql(_PLACES.format(condition=part.condition)).to_pylist()


def recorded_tracks(found: Sequence[Mapping[str, Any]]) -> dict[str, Track]:
    """Process and thread ids as torch writes them: a device's are its number and the stream's."""
    tracks = {}
    for row in found:
        pid, tid = _host_ids(row)
        if row["on_device"]:
            pid, tid = _number(row["device"], pid), row["stream"]
            tid = (row["queue"] or "") if tid is None else tid
        tracks[row["place"]] = Track(pid, tid, *_names(row, many=False))
    return tracks


def drawn_tracks(found: Sequence[Mapping[str, Any]]) -> dict[str, Track]:
    """A process for each device and for each process of each rank, all ids being numbers."""
    many = len({row["rank"] for row in found}) > 1
    ids = _Ids(found)
    tracks = {}
    of_ids: dict[tuple[int | str, int | str], Track] = {}
    for row in found:
        process, name = _names(row, many=many)
        pid, tid = _host_ids(row)
        if row["on_device"] or many or not isinstance(pid, int):
            key = row["device"] if row["on_device"] else pid
            pid = ids.of("process", row["rank"], row["on_device"], key)
        if row["on_device"] or not isinstance(tid, int):
            tid = ids.of("thread", row["place"])
        # what a viewer draws as one thread is one track, whatever else tells its events apart
        tracks[row["place"]] = of_ids.setdefault((pid, tid), Track(pid, tid, process, name))
    return tracks


class _Ids:
    """Small numbers that no process or thread of the trace has."""

    def __init__(self, found: Sequence[Mapping[str, Any]]) -> None:
        self._taken = {number for row in found for number in (row["pid"], row["tid"])}
        self._given: dict[tuple[object, ...], int] = {}
        self._last = 0

    def of(self, *key: object) -> int:
        if key not in self._given:
            self._given[key] = self.fresh()
        return self._given[key]

    def fresh(self) -> int:
        self._last += 1
        while self._last in self._taken:
            self._last += 1
        return self._last


class Lanes:
    """Puts slices that overlap without nesting on tracks of their own.

    A viewer draws a thread as a stack, and Perfetto leaves out what is no stack.
    """

    def __init__(self, found: Sequence[Mapping[str, Any]], tracks: Mapping[str, Track]) -> None:
        self._tracks = tracks
        self._ids = _Ids(found)
        for track in tracks.values():
            self._ids.of("used", track.pid)
            self._ids.of("used", track.tid)

    def thread(self, place: str, start: int, end: int) -> int | str:
        """Thread id for a slice; slices come in the order of their starts, longer ones first."""
        track = self._tracks[place]
        for lane, stack in enumerate(track.stacks):
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or end <= stack[-1]:
                stack.append(end)
                return track.more[lane - 1] if lane else track.tid
        track.stacks.append([end])
        if len(track.stacks) == 1:
            return track.tid
        track.more.append(self._ids.fresh())
        return track.more[-1]


def labels(tracks: Mapping[str, Track]) -> Iterator[dict[str, object]]:
    """Metadata events that name processes and threads and put them in order."""
    each = {id(track): track for track in tracks.values()}.values()
    processes = {track.pid: track.process for track in each}
    for order, (pid, name) in enumerate(processes.items()):
        yield _label(pid, 0, "process_name", {"name": name})
        yield _label(pid, 0, "process_sort_index", {"sort_index": order})
    for order, track in enumerate(each):
        for number, tid in enumerate([track.tid, *track.more]):
            name = f"{track.name} ({number + 1})" if number else track.name
            yield _label(track.pid, tid, "thread_name", {"name": name})
            yield _label(track.pid, tid, "thread_sort_index", {"sort_index": order * 64 + number})


def _label(
    pid: int | str, tid: int | str, name: str, args: Mapping[str, object]
) -> dict[str, object]:
    return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": name, "args": args}


def _host_ids(row: Mapping[str, Any]) -> tuple[int | str, int | str]:
    pid = row["pid_raw"] or "" if row["pid"] is None else row["pid"]
    tid = row["tid_raw"] or "" if row["tid"] is None else row["tid"]
    return pid, tid


def _number(device: str | None, otherwise: int | str) -> int | str:
    if device is None:
        return otherwise
    digits = device.rpartition(":")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else device


def _names(row: Mapping[str, Any], *, many: bool) -> tuple[str, str]:
    rank = f"rank {row['rank']}: " if many else ""
    if row["on_device"]:
        queue = row["queue"] or "queue unknown"
        name = f"{queue} annotations" if row["marks"] else queue
        return f"{rank}{row['device'] or 'device unknown'}", name
    pid, tid = _host_ids(row)
    return f"{rank}process {pid}", row["thread_name"] or f"thread {tid}"
