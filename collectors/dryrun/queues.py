"""The device's hardware queues: each a thread that runs its tasks in order.

A task waits for the tasks before it that wrote what it reads, or read what it writes, when
those ran on other queues; on its own queue the order alone is enough.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from queue import SimpleQueue

import torch
from torch.autograd import _enable_record_function  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Ticket:
    """One task of one queue, to wait for."""

    queue: HardwareQueue = field(repr=False)
    number: int
    modelled_end_ns: int

    @property
    def done(self) -> bool:
        return self.queue.finished >= self.number

    def wait(self) -> None:
        """Block until the task has run."""
        self.queue.wait(self.number)


@dataclass
class Memory:
    """Bytes of all storages that a living tensor belongs to."""

    allocated: int = 0
    peak: int = 0
    # a finaliser may run inside of any of these
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def add(self, nbytes: int) -> None:
        with self._lock:
            self.allocated += nbytes
            self.peak = max(self.peak, self.allocated)

    def unlock(self) -> None:
        """A forked child may find the lock as another thread of its parent held it."""
        self._lock = threading.RLock()

    def reset_peak(self) -> None:
        with self._lock:
            self.peak = self.allocated


class _Hold:
    """Lives as long as any tensor of a storage."""

    __slots__ = ("__weakref__", "_memory", "_nbytes")

    def __init__(self, memory: Memory, nbytes: int) -> None:
        self._memory, self._nbytes = memory, nbytes
        memory.add(nbytes)

    def __del__(self) -> None:
        self._memory.add(-self._nbytes)


@dataclass
class Storage:
    """Memory that a tensor and its views share: who wrote it last, who has read it since."""

    nbytes: int
    memory: Memory = field(repr=False)
    number: int = field(default_factory=count().__next__)
    """Its own among all of the process."""
    written: Ticket | None = None
    read: dict[str, Ticket] = field(default_factory=dict)
    _held: weakref.ref[_Hold] | None = None

    def hold(self) -> object:
        """What a tensor of this storage keeps; while one does, its bytes are in use."""
        hold = self._held() if self._held else None
        if hold is None:
            hold = _Hold(self.memory, self.nbytes)
            self._held = weakref.ref(hold)
        return hold

    @property
    def alive(self) -> bool:
        """Whether any tensor of it is left."""
        return self._held is not None and self._held() is not None

    def before_read(self) -> list[Ticket]:
        return [self.written] if self.written else []

    def before_write(self) -> list[Ticket]:
        return [*self.before_read(), *self.read.values()]

    def note_read(self, ticket: Ticket) -> None:
        self.read[ticket.queue.name] = ticket

    def note_write(self, ticket: Ticket) -> None:
        self.written = ticket
        self.read.clear()


Run = Callable[[], None]
Done = Callable[[int, int], None]


@dataclass
class Task:
    """What a queue runs; `done(start_ns, end_ns)` is called once it has run."""

    name: str
    run: Run
    done: Done
    after: list[Ticket] = field(default_factory=list)
    number: int = 0


class Faults:
    """The first error since the last wait, of all queues of a device."""

    def __init__(self) -> None:
        self._first: RuntimeError | None = None
        self._lock = threading.Lock()

    def keep(self, error: BaseException, task: str, queue: str) -> None:
        found = RuntimeError(f"{task} failed on queue {queue!r} of the neuron device: {error}")
        found.__cause__ = error
        with self._lock:
            self._first = self._first or found

    def raise_first(self) -> None:
        """Raise it, once.

        Raises:
            RuntimeError: A task failed since this was last asked.
        """
        with self._lock:
            error, self._first = self._first, None
        if error is not None:
            raise error


class HardwareQueue:
    """Runs tasks one after the other on a thread of its own."""

    def __init__(self, name: str, kind: str, faults: Faults) -> None:
        self.name, self.kind = name, kind
        self.finished = 0
        self.free_ns = 0
        """When the modelled queue has nothing left to do."""
        self.given = 0
        self._waiting: SimpleQueue[Task | None] = SimpleQueue()
        self._moved = threading.Condition()
        self._faults = faults
        self._thread: threading.Thread | None = None
        self._submitting = threading.Lock()

    def submit(self, task: Task, modelled_end_ns: int) -> Ticket:
        """Queue a task."""
        with self._submitting:
            self.given += 1
            task.number = self.given
            if self._thread is None:
                name = f"neuron {self.name}"
                self._thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._thread.start()
            task.after = [ticket for ticket in task.after if ticket.queue is not self]
            self._waiting.put(task)
            return Ticket(self, self.given, modelled_end_ns)

    def wait(self, number: int) -> None:
        """Block until a task has run.

        Raises:
            RuntimeError: A task failed since the last wait.
        """
        self.wait_quietly(number)
        self._faults.raise_first()

    def wait_quietly(self, number: int) -> None:
        """Block until a task has run, well or not."""
        if self.finished < number:
            with self._moved:
                self._moved.wait_for(lambda: self.finished >= number)

    @property
    def idle(self) -> bool:
        """Whether everything submitted has run."""
        return self.finished >= self.given

    def drain(self) -> None:
        """Block until everything submitted has run."""
        self.wait(self.given)

    def end(self, timeout_s: float | None = None) -> None:
        """Run what was submitted, and let the thread go; None = however long it takes."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(timeout_s)
            self._thread = None

    def _work(self) -> None:
        _enable_record_function(False)  # noqa: FBT003 - what a queue runs is no op of the program
        with torch.no_grad():
            while (task := self._waiting.get()) is not None:
                self._run(task)
                # the loop would else hold the last task's tensors while it waits
                del task

    def _run(self, task: Task) -> None:
        for ticket in task.after:
            ticket.queue.wait_quietly(ticket.number)
        start = time.time_ns()
        try:
            task.run()
        except BaseException as error:  # noqa: BLE001 - as on a device, it shows at the next wait
            self._faults.keep(error, task.name, self.name)
        task.done(start, time.time_ns())
        with self._moved:
            self.finished = task.number
            self._moved.notify_all()
