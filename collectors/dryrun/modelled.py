"""The modelled device's timeline: what the same submissions would take on the chip.

One host that submits, and queues that each run in order; a program starts when the host has
submitted it, its queue is free and what it reads is there. Nothing here looks at a real clock.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from neuron_explorer.collectors.dryrun.constants import Constants
from neuron_explorer.collectors.dryrun.jobs import Job
from neuron_explorer.collectors.dryrun.log import Floors
from neuron_explorer.collectors.dryrun.queues import HardwareQueue, Ticket


@dataclass
class ModelledTime:
    """Where the modelled host stands."""

    constants: Constants
    host_ns: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def place(self, queue: HardwareQueue, after: list[Ticket], job: Job) -> tuple[int, int | None]:
        """Start and duration of a task: its launch cost and work, or its time on a link.

        The duration is None where the model has no number: then it takes no time on this timeline.
        """
        floors = self.floors(job)
        if floors is None:
            return self._place(queue, after, 0)[0], None
        work = floors.link_ns if floors.link_ns is not None else job.work_ns
        return self._place(queue, after, floors.launch_ns + work)

    def floors(self, job: Job) -> Floors | None:
        """What a task's duration is made of; None where no constant is known."""
        if not job.known:
            return None
        if job.kind == "collective":
            return Floors(self.constants.launch_ns + job.latency_ns, link_ns=job.work_ns)
        if job.kind == "memcpy":
            moved = (job.read_bytes or 0) / self.constants.link_bytes_per_ns
            return Floors(self.constants.link_latency_ns, link_ns=round(moved))
        moved = (job.read_bytes or 0) + (job.write_bytes or 0)
        memory = round(moved / self.constants.bytes_per_ns)
        return Floors(self.constants.launch_ns, memory, job.compute_ns)

    def wait(self, until_ns: int) -> tuple[int, int]:
        """The host waits for something that ends then; returns since when and how long."""
        with self._lock:
            since = self.host_ns
            self.host_ns = max(since, until_ns)
            return since, self.host_ns - since

    def _place(
        self, queue: HardwareQueue, after: list[Ticket], duration_ns: int
    ) -> tuple[int, int]:
        with self._lock:
            self.host_ns += self.constants.submit_ns
            ready = max((ticket.modelled_end_ns for ticket in after), default=0)
            start = max(self.host_ns, queue.free_ns, ready)
            queue.free_ns = start + duration_ns
            return start, duration_ns
