"""The device's own log: every submission, queue event, compilation and synchronisation.

It is the truth that a trace of a dry run is checked against. Times are `time.time_ns()` of
this machine; modelled times are nanoseconds on the modelled device's own timeline.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Launch:
    """A host call that submitted something to a queue, or waited for one."""

    kind: str
    """launch, copy or sync."""
    name: str
    correlation: int
    start_ns: int
    end_ns: int
    tid: int
    modelled_start_ns: int | None = None
    modelled_duration_ns: int | None = None
    """How long the modelled host waits."""


@dataclass(frozen=True)
class Floors:
    """What a modelled duration is made of; None where a part has no meaning."""

    launch_ns: int
    """Fixed cost: of a program's launch, a collective's launch and hops, or a copy's latency."""
    memory_ns: int | None = None
    compute_ns: int | None = None
    link_ns: int | None = None

    @property
    def bound(self) -> str:
        """What takes the most: launch, memory or compute; link for everything over one."""
        if self.link_ns is not None:
            return "link"
        parts = {
            "launch": self.launch_ns,
            "memory": self.memory_ns or 0,
            "compute": self.compute_ns or 0,
        }
        return max(parts, key=parts.__getitem__)


@dataclass(frozen=True)
class QueueEvent:
    """One program or copy that ran on a queue."""

    queue: str
    kind: str
    """kernel, memcpy or collective."""
    name: str
    correlation: int
    start_ns: int
    end_ns: int | None
    """None where nothing was executed: shapes only."""
    read_bytes: int | None
    write_bytes: int | None
    flops: int | None
    modelled_start_ns: int
    modelled_duration_ns: int | None
    """None where the model has no number: an unknown collective."""
    graph: str | None = None
    """Graph id of a compiled program."""
    ops: int = 1
    """Eager ops that it runs; more than one under adaptive eager."""
    floors: Floors | None = None
    """None where the model has no number."""
    reads: tuple[tuple[int, int], ...] = ()
    """Number and bytes of each storage that it reads."""
    writes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Compilation:
    """A program that was built because none of its key was there."""

    name: str
    key: str
    recompilation: bool
    """Whether this call site had run with another key before."""
    reason: str | None
    start_ns: int
    end_ns: int
    tid: int
    graph: str | None = None


@dataclass(frozen=True)
class Fallback:
    """An op that ran on the host, its tensors copied there and back."""

    name: str
    start_ns: int
    end_ns: int
    tid: int
    copied_bytes: int


@dataclass
class DeviceLog:
    """Everything that happened, in the order in which it ended."""

    launches: list[Launch] = field(default_factory=list)
    events: list[QueueEvent] = field(default_factory=list)
    compilations: list[Compilation] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _correlation: int = 0

    def next_correlation(self) -> int:
        with self._lock:
            self._correlation += 1
            return self._correlation

    def clear(self) -> None:
        """Forget what was logged, not while `profile()` records; numbers go on."""
        for record in (self.launches, self.events, self.compilations, self.fallbacks):
            record.clear()
