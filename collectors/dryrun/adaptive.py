"""Adaptive eager: neighbouring queued ops become one program until something waits for them.

Order, values and results stay those of the ops. What such a program reads from HBM is what
comes from outside of it; what it writes is what is still alive when it is submitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from neuron_explorer.collectors.dryrun.jobs import Access, Job
from neuron_explorer.collectors.dryrun.programs import Program, in_work_ns

if TYPE_CHECKING:
    from neuron_explorer.collectors.dryrun.core import Core
    from neuron_explorer.collectors.dryrun.queues import Storage


class Grouping:
    """Ops that were dispatched and not submitted."""

    def __init__(self, device: Core) -> None:
        self._device = device
        self._limit = device.constants.adaptive_ops
        self._jobs: list[Job] = []
        self._steps: list[Callable[[], None]] = []
        self._written: set[int] = set()

    def takes(self, job: Job) -> bool:
        """Whether a job is an eager op; deterministic algorithms switch grouping off."""
        return job.key is not None and not torch.are_deterministic_algorithms_enabled()

    def add(self, job: Job) -> None:
        """Let an op wait for its neighbours."""
        self._jobs.append(job)
        self._steps.append(job.run)
        self._written.update(id(storage) for storage, _ in job.writes)
        if len(self._jobs) >= self._limit:
            self.flush()

    def makes(self, storage: Storage) -> bool:
        """Whether an op that waits writes this memory."""
        return id(storage) in self._written

    def later(self, step: Callable[[], None]) -> None:
        """Do something between the ops: it is no work of the program."""
        self._steps.append(step)

    def flush(self) -> None:
        """Submit the ops that wait as one program."""
        jobs, steps = self._jobs, self._steps
        if not jobs:
            return
        self._jobs, self._steps, self._written = [], [], set()
        self._device.place(("compute", 0), self._merged(jobs, steps))

    def _merged(self, jobs: list[Job], steps: list[Callable[[], None]]) -> Job:
        traffic = _traffic(jobs, self._device.constants.on_chip_bytes)
        first, last = jobs[0].name, jobs[-1].name
        name = first if len(jobs) == 1 else f"{first} ... {last} ({len(jobs)} ops)"
        kept = tuple(storage.alive for job in jobs for storage, _ in job.writes)
        key = (("adaptive", *(job.key[0] for job in jobs)), *(job.key[1:] for job in jobs), kept)
        program = self._device.programs.find(name, key, lambda: self._program(name, jobs, traffic))

        def run() -> None:
            for step in steps:
                step()

        return Job(
            name=name,
            kind="kernel",
            reads=list(traffic.reads.values()),
            writes=list(traffic.writes.values()),
            run=run,
            read_bytes=program.read_bytes,
            write_bytes=program.write_bytes,
            flops=program.flops,
            work_ns=program.work_ns,
            compute_ns=program.compute_ns,
            ops=len(jobs),
        )

    def _program(self, name: str, jobs: list[Job], traffic: _Traffic) -> Program:
        flops = [job.flops for job in jobs if job.flops is not None]
        compute = sum(job.compute_ns for job in jobs)
        read = sum(n for _, n in traffic.reads.values()) + traffic.spilled
        write = traffic.kept + traffic.spilled
        return Program(
            name=name,
            outputs=None,
            read_bytes=read,
            write_bytes=write,
            flops=sum(flops) if flops else None,
            work_ns=in_work_ns(self._device.constants, read + write, compute),
            compute_ns=compute,
        )


@dataclass
class _Traffic:
    """What crosses the border of a group."""

    reads: dict[int, Access]
    """Memory from outside, and the most that any of its ops reads of it."""
    writes: dict[int, Access]
    """All memory that it writes."""
    kept: int
    """Bytes of what is still alive."""
    spilled: int
    """Bytes that do not fit on the chip between its ops."""


def _traffic(jobs: list[Job], on_chip_bytes: int) -> _Traffic:
    reads: dict[int, Access] = {}
    writes: dict[int, Access] = {}
    for job in jobs:
        for storage, nbytes in job.reads:
            if id(storage) not in writes:
                least = nbytes if job.read_bytes is None else min(nbytes, job.read_bytes)
                _most(reads, storage, least)
        for storage, nbytes in job.writes:
            _most(writes, storage, nbytes)
    kept = sum(nbytes for storage, nbytes in writes.values() if storage.alive)
    return _Traffic(reads, writes, kept, max(0, _most_alive(jobs, writes) - on_chip_bytes))


def _most(found: dict[int, Access], storage: Storage, nbytes: int) -> None:
    before = found.get(id(storage), (storage, 0))[1]
    found[id(storage)] = (storage, min(max(before, nbytes), storage.nbytes))


def _most_alive(jobs: list[Job], writes: dict[int, Any]) -> int:
    """The most bytes at once of what only lives inside of a group."""
    last: dict[int, int] = {}
    for number, job in enumerate(jobs):
        last.update((id(storage), number) for storage, _ in [*job.reads, *job.writes])
    alive: dict[int, int] = {}
    most = 0
    for number, job in enumerate(jobs):
        inner = [access for access in job.writes if not access[0].alive]
        alive.update((id(storage), writes[id(storage)][1]) for storage, _ in inner)
        most = max(most, sum(alive.values()))
        alive = {key: nbytes for key, nbytes in alive.items() if last[key] > number}
    return most
