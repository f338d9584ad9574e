"""A pretended accelerator of another vendor, as its runtime library would be seen from Python.

It has its own clock, which is offset and drifts, a ring buffer that overflows, and events that
its firmware reports late. It remembers the true host time of everything, for tests to compare.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass
class Event:
    """One record of the ring buffer; times on the card's clock."""

    queue: str
    name: str
    start: int
    end: int | None
    correlation: int
    read: int | None = None
    written: int | None = None
    flops: int | None = None
    graph: str | None = None


@dataclass
class Call:
    """One call into the runtime; times of the host."""

    kind: str
    name: str
    correlation: int
    start: int
    end: int
    tid: int


@dataclass
class Card:
    """Queues that take what is launched on them, one after the other."""

    offset_ns: int = 7_000_000_000_123
    drift_ppm: float = 50.0
    drop_every: int = 0
    """Every so manieth event is lost; 0 = none."""
    jitter_ns: int = 0
    """By how much a reading of the clock may be off."""
    origin_ns: int = field(default_factory=time.time_ns)
    on: bool = False
    launched: dict[int, Call] = field(default_factory=dict)
    true_start_ns: dict[int, int] = field(default_factory=dict)
    """Host time at which each launched event began."""
    _events: list[Event] = field(default_factory=list)
    _calls: list[Call] = field(default_factory=list)
    _lost: dict[str, int] = field(default_factory=dict)
    _correlation: int = 0
    _readings: int = 0

    def at(self, host_ns: int) -> int:
        """The card's clock at a moment of the host's."""
        since = host_ns - self.origin_ns
        return self.offset_ns + since + round(since * self.drift_ppm / 1e6)

    def timestamp(self) -> int:
        self._readings += 1
        off = self.jitter_ns if self._readings % 2 else -self.jitter_ns
        return self.at(time.time_ns()) + off

    def launch(self, queue: str, name: str, **counted: Any) -> int:
        """Put a kernel or a copy on a queue."""
        begin = time.time_ns()
        self._correlation += 1
        number, start = self._correlation, begin + 20_000
        kind = "copy" if queue == "copy" else "launch"
        call = Call(kind, f"acme_{kind}", number, begin, time.time_ns(), threading.get_native_id())
        self.launched[number], self.true_start_ns[number] = call, start
        if self.on:
            self._calls.append(call)
            event = Event(queue, name, self.at(start), self.at(start + 4_000), number, **counted)
            self._record(event)
        return number

    def report_late(self, queue: str, by_ns: int) -> None:
        """An event that the firmware stamps long after the tracing has ended."""
        at = self.at(time.time_ns() + by_ns)
        self._record(Event(queue, "late", at, at + 1_000, 0))

    def _record(self, event: Event) -> None:
        if self.drop_every and event.correlation % self.drop_every == 1:
            self._lost[event.queue] = self._lost.get(event.queue, 0) + 1
        else:
            self._events.append(event)

    def trace_on(self) -> None:
        self.on = True

    def trace_off(self) -> None:
        self.on = False

    def synchronize(self) -> None:
        """Nothing to wait for: what is launched has its times already."""

    def take(self) -> tuple[list[Event], list[Call], dict[str, int]]:
        """Hand over the ring buffer and what did not fit in."""
        taken = self._events, self._calls, self._lost
        self._events, self._calls, self._lost = [], [], {}
        return taken


class _Sends(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Launches something on the card for each operator that runs."""

    def __init__(self, card: Card) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._card, self._turn = card, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        if name != "aten::detach":
            queue = "copy" if name == "aten::_to_copy" else f"compute {self._turn % 2}"
            self._turn += 1
            self._card.launch(queue, f"acme_{name.partition('::')[2]}")
        return func(*args, **(kwargs or {}))


@contextmanager
def computing_on(card: Card) -> Iterator[None]:
    """Every operator in here also runs on the card."""
    with _Sends(card):
        yield


def job(card: Card, steps: int, on_step: Any = lambda: None) -> torch.Tensor:
    """A few operators a step, each on its own line: `acme: <operator>` says which."""
    x = torch.ones(8, 8)
    with computing_on(card):
        for _ in range(steps):
            y = x.mul(2.0)  # acme: acme_mul
            y = y.sin()  # acme: acme_sin
            y = y.double()  # acme: acme__to_copy
            x = y.float().add(1.0)  # acme: acme_add
            time.sleep(0.01)
            on_step()
    return x
