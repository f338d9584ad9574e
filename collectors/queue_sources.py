"""Hardware queues of any device: what a vendor writes to bring them into `trace.parquet`.

A source is an object with the members of `QueueSource`; `register_queue_source` makes it known.
While `profile()` records, every registered source is started, and at the end stopped and
drained. Its events are put on torch's clock and linked (launch, op, line, step) like Kineto's.
`docs/queue-sources.md` shows a whole one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

import pyarrow as pa

from neuron_explorer.errors import UsageError

QueueKind = Literal["compute", "vector", "copy_in", "copy_out", "copy", "collective", "dma"]
QUEUE_KINDS: tuple[QueueKind, ...] = get_args(QueueKind)

_EVENTS: dict[str, Any] = {
    "queue": pa.string(),
    "name": pa.string(),
    "start_ns": pa.int64(),
    "end_ns": pa.int64(),
    "correlation": pa.int64(),
    "read_bytes": pa.int64(),
    "write_bytes": pa.int64(),
    "flops": pa.int64(),
    "graph_id": pa.string(),
    "modelled_start_ns": pa.int64(),
    "modelled_duration_ns": pa.int64(),
    "attributes": pa.string(),
}
EVENTS = pa.schema(_EVENTS)
"""One row an event of a queue. Times are on the source's own clock, ns; an unknown end is NULL.
`correlation` is that of the launch. Bytes and FLOPs are what the device itself counted.
`attributes` is a JSON object of counters and whatever else there is. Only `queue`, `name` and
`start_ns` are never NULL; columns may be left out."""

_LAUNCHES: dict[str, Any] = {
    "kind": pa.string(),
    "name": pa.string(),
    "correlation": pa.int64(),
    "start_ns": pa.int64(),
    "end_ns": pa.int64(),
    "tid": pa.int64(),
    "modelled_start_ns": pa.int64(),
    "modelled_duration_ns": pa.int64(),
}
LAUNCHES = pa.schema(_LAUNCHES)
"""One row a call of the host into the runtime: `kind` as in `schema.KINDS["runtime"]`, times
by `time.time_ns()`, `tid` by `threading.get_native_id()`. A source that models a device may say
when and how long its modelled host waits."""


@dataclass(frozen=True)
class ClockReading:
    """Both clocks at one moment."""

    host_ns: int
    """`time.time_ns()`."""
    device_ns: int
    """The source's clock."""
    uncertainty_ns: int
    """By how much the two may not be of the same moment."""


@dataclass(frozen=True)
class Batch:
    """What a source recorded since it was last drained."""

    events: pa.Table
    """Columns of `EVENTS`."""
    launches: pa.Table | None = None
    """Columns of `LAUNCHES`; None where the runtime's calls are not recorded."""
    host: pa.Table | None = None
    """Other rows of the host, columns of `recorded.RECORDED`, by `time.time_ns()`."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Events that were lost, by queue."""


class QueueSource(Protocol):
    """Records one device's queues."""

    @property
    def name(self) -> str:
        """Of the source, for messages and metadata."""

    @property
    def device(self) -> str:
        """As torch names it: `neuron:0`."""

    @property
    def queues(self) -> Mapping[str, QueueKind]:
        """Kind of each queue, by its name."""

    def start(self) -> None:
        """Begin to record."""

    def stop(self) -> None:
        """End to record; wait for what was launched."""

    def clock(self) -> ClockReading:
        """Read both clocks; asked a few times before the start and after the stop."""

    def drain(self) -> Batch:
        """Hand over what was recorded, and forget it."""


_sources: dict[str, QueueSource] = {}


def register_queue_source(source: QueueSource) -> None:
    """Let `profile()` record a device's queues, from its next session on.

    A source of the same name is replaced.

    Raises:
        UsageError: A member of `QueueSource` is missing, or a queue has an unknown kind.
    """
    members = ("name", "device", "queues", "start", "stop", "clock", "drain")
    missing = [member for member in members if not hasattr(source, member)]
    if missing:
        raise UsageError(f"a queue source lacks {', '.join(missing)}", hint="see QueueSource")
    for queue, kind in source.queues.items():
        if kind not in QUEUE_KINDS:
            raise UsageError(
                f"queue {queue!r} of {source.name!r} is of unknown kind {kind!r}",
                hint=f"one of {', '.join(QUEUE_KINDS)}",
            )
    _sources[source.name] = source


def unregister_queue_source(name: str) -> None:
    """Forget a source; harmless where there is none."""
    _sources.pop(name, None)


def registered_sources() -> list[QueueSource]:
    """All sources, in the order in which they were registered."""
    return list(_sources.values())
