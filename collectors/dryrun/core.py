"""One logical core: its queues, and what the host submits to them and waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from neuron_explorer.collectors.dryrun.adaptive import Grouping
from neuron_explorer.collectors.dryrun.constants import Constants
from neuron_explorer.collectors.dryrun.jobs import Job
from neuron_explorer.collectors.dryrun.log import DeviceLog, Launch, QueueEvent
from neuron_explorer.collectors.dryrun.modelled import ModelledTime
from neuron_explorer.collectors.dryrun.programs import ProgramCache
from neuron_explorer.collectors.dryrun.queues import Faults, HardwareQueue, Task, Ticket
from neuron_explorer.collectors.dryrun.tracing import torch_traces

LAUNCH, SYNC = "nrt_model_submit", "nrt_queue_synchronize"
_COPY_IN, _COPY_OUT = "nrt_tensor_write", "nrt_tensor_read"


class Core:
    """Queues that run what is submitted, and the log and modelled time of it."""

    def __init__(self, constants: Constants, *, execute: bool, adaptive: bool) -> None:
        self.constants, self.execute = constants, execute
        self.log = DeviceLog()
        self.programs = ProgramCache(constants, self.log)
        self.modelled = ModelledTime(constants)
        self.faults = Faults()
        self.queues = {
            (kind, number): HardwareQueue(f"{kind} {number}", kind, self.faults)
            for kind, count in constants.queues.items()
            for number in range(count)
        }
        self.grouping = Grouping(self) if adaptive else None
        self.submitting = threading.RLock()

    def submit(self, where: tuple[str, int], job: Job) -> Ticket | None:
        """Queue a task behind what it depends on, and log it; None where it waits for others."""
        with self.submitting:
            if self.grouping is None or not self.grouping.takes(job):
                self.flush()
                return self.place(where, job)
            if job.follow and not self.execute:
                job.run()
            self.grouping.add(job)
            return None

    def place(self, where: tuple[str, int], job: Job) -> Ticket:
        """Queue a task that needs no other to be submitted before it."""
        with self.submitting:
            if torch_traces():
                return self._unlogged(self.queues[where], job)
            start = time.time_ns()
            queue, correlation = self.queues[where], self.log.next_correlation()
            after = [t for t in _dependencies(job) if t.queue in self.queues.values()]
            modelled = self.modelled.place(queue, after, job)
            done = self._logs(queue, job, correlation, modelled)
            end = modelled[0] + (modelled[1] or 0)
            if self.execute:
                ticket = queue.submit(Task(job.name, job.run, done, after), end)
            else:
                if job.follow:
                    job.run()
                done(start, None)
                ticket = Ticket(queue, 0, end)
            _note(job, ticket)
        kind = "copy" if job.kind == "memcpy" else "launch"
        name = LAUNCH if kind == "launch" else _COPY_IN if job.writes else _COPY_OUT
        self._launched(kind, name, correlation, start)
        return ticket

    def _unlogged(self, queue: HardwareQueue, job: Job) -> Ticket:
        """A constant that torch.compile works out while it traces: no work of the program."""
        ticket = Ticket(queue, 0, 0)
        if self.execute:
            ticket = queue.submit(Task(job.name, job.run, unseen, _dependencies(job)), 0)
        elif job.follow:
            job.run()
        _note(job, ticket)
        return ticket

    def _logs(
        self, queue: HardwareQueue, job: Job, correlation: int, modelled: tuple[int, int | None]
    ) -> Callable[[int, int | None], None]:
        event = QueueEvent(
            queue=queue.name,
            kind=job.kind,
            name=job.name,
            correlation=correlation,
            start_ns=0,
            end_ns=None,
            read_bytes=job.read_bytes,
            write_bytes=job.write_bytes,
            flops=job.flops,
            modelled_start_ns=modelled[0],
            modelled_duration_ns=modelled[1],
            graph=job.graph,
            ops=job.ops,
            floors=self.modelled.floors(job),
            reads=tuple((storage.number, nbytes) for storage, nbytes in job.reads),
            writes=tuple((storage.number, nbytes) for storage, nbytes in job.writes),
        )

        def done(began: int, ended: int | None) -> None:
            self.log.events.append(replace(event, start_ns=began, end_ns=ended))

        return done

    def _launched(
        self,
        kind: str,
        name: str,
        correlation: int,
        start: int,
        waited: tuple[int, int] | None = None,
    ) -> None:
        tid, modelled = threading.get_native_id(), waited or (None, None)
        self.log.launches.append(
            Launch(kind, name, correlation, start, time.time_ns(), tid, *modelled)
        )

    def wait(self, ticket: Ticket | None) -> None:
        """Block until a task has run.

        Raises:
            RuntimeError: A task failed since the last wait.
        """
        start, waited = time.time_ns(), None
        if ticket is not None:
            ticket.queue.wait_quietly(ticket.number)
            waited = self.modelled.wait(ticket.modelled_end_ns)
        self._launched("sync", SYNC, self.log.next_correlation(), start, waited)
        self.faults.raise_first()

    def synchronize(self) -> None:
        """Wait for everything submitted.

        Raises:
            RuntimeError: A task failed since the last wait.
        """
        start = time.time_ns()
        self.flush()
        for queue in self.queues.values():
            queue.wait_quietly(queue.given)
        waited = self.modelled.wait(max(queue.free_ns for queue in self.queues.values()))
        self._launched("sync", SYNC, self.log.next_correlation(), start, waited)
        self.faults.raise_first()

    def flush(self) -> None:
        """Submit what waits to be made one program with its neighbours."""
        if self.grouping is not None:
            with self.submitting:
                self.grouping.flush()

    def close(self, timeout_s: float | None = None) -> None:
        """Run what was submitted and end the queues' threads, waiting so long for each."""
        self.flush()
        for queue in self.queues.values():
            queue.end(timeout_s)


def unseen(start_ns: int, end_ns: int) -> None:
    """Views take a place in the queue's order, but are no event of it."""


def _note(job: Job, ticket: Ticket) -> None:
    for storage, _ in job.reads:
        storage.note_read(ticket)
    for storage, _ in job.writes:
        storage.note_write(ticket)


def _dependencies(job: Job) -> list[Ticket]:
    found = [ticket for storage, _ in job.reads for ticket in storage.before_read()]
    return found + [ticket for storage, _ in job.writes for ticket in storage.before_write()]
