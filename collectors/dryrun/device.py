"""The dry-run device: every op that reaches it becomes a task of a queue, or falls back.

Eager: one program an op. Values come later, in the order of the queue; whatever needs them
on the host waits.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch.autograd import _enable_record_function  # type: ignore[attr-defined]
from torch.utils._python_dispatch import return_and_correct_aliasing

from neuron_explorer.collectors.dryrun.adaptive import Grouping
from neuron_explorer.collectors.dryrun.arguments import (
    cell_of,
    cells_in,
    check_devices,
    device_tensors,
    index_of,
    is_small,
    map_leaves,
    map_tensors,
    mutated,
    on_host,
    snapshot,
    tensors_in,
    values,
)
from neuron_explorer.collectors.dryrun.constants import Constants, Support
from neuron_explorer.collectors.dryrun.jobs import Access, Job
from neuron_explorer.collectors.dryrun.log import DeviceLog, Launch, QueueEvent
from neuron_explorer.collectors.dryrun.modelled import ModelledTime
from neuron_explorer.collectors.dryrun.programs import (
    Program,
    ProgramCache,
    meta_call,
    sizes,
    to_meta,
)
from neuron_explorer.collectors.dryrun.queues import (
    Faults,
    HardwareQueue,
    Memory,
    Storage,
    Task,
    Ticket,
)
from neuron_explorer.collectors.dryrun.seeds import Generator, draw, is_random
from neuron_explorer.collectors.dryrun.tensor import NAME, Cell, NeuronTensor
from neuron_explorer.collectors.dryrun.transfers import Transfers

aten = torch.ops.aten
LAUNCH, SYNC = "nrt_model_submit", "nrt_queue_synchronize"
_COPY_IN, _COPY_OUT = "nrt_tensor_write", "nrt_tensor_read"
_VIEWS = frozenset({aten._unsafe_view.default})
"""Ops that PyTorch's schema does not call views, though nothing is moved."""
_INDEXED = re.compile(r"_?(unsafe_)?index(_put)?(_impl)?_?")
"""Ops whose indices PyTorch takes from the host as well."""
_NO_PROGRAM = (NotImplementedError, torch._subclasses.fake_tensor.DataDependentOutputException)


class Device:
    """All logical cores of one chip, as one process sees them."""

    def __init__(
        self,
        constants: Constants,
        support: Support,
        *,
        execute: bool = True,
        adaptive: bool = False,
    ) -> None:
        self.constants, self.support, self.execute = constants, support, execute
        self.log = DeviceLog()
        self.programs = ProgramCache(constants, self.log)
        self.modelled = ModelledTime(constants)
        self.generator = Generator()
        self.memory = Memory()
        self.faults = Faults()
        self.queues = {
            (kind, number): HardwareQueue(f"{kind} {number}", kind, self.faults)
            for kind, count in constants.queues.items()
            for number in range(count)
        }
        self.transfers = Transfers(self)
        self.grouping = Grouping(self) if adaptive else None
        self.forked = False
        """Whether this is a child of the process that the device belongs to."""
        self._submitting = threading.RLock()

    # What PyTorch calls.

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one op of which an argument lies on the device.

        Raises:
            RuntimeError: This is a forked child, tensors lie on several devices, or the op
                cannot run on the device.
        """
        if traced_by := _fake_mode(args, kwargs):
            faked = map_tensors(lambda t: _faked(traced_by, t), (args, kwargs))
            with traced_by:
                return func(*faked[0], **faked[1])
        if self.forked:
            raise RuntimeError(
                f"a forked process cannot use the {NAME} device of its parent: move tensors to "
                "it in the parent, or start workers with multiprocessing_context='spawn'"
            )
        with _inside():
            return self._dispatch(func, args, kwargs)

    def empty(self, like: torch.Tensor, index: int) -> NeuronTensor:
        """Memory for a tensor of this shape; no program runs."""
        value = None
        if self.execute or is_small(like):
            value = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
        return NeuronTensor(like, Cell(self.storage(like), value), index)

    def storage(self, like: torch.Tensor) -> Storage:
        """New memory for a tensor of this shape."""
        return Storage(sizes(self.constants, iter([like])), self.memory)

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
            with self._submitting:
                self.grouping.flush()

    def close(self, timeout_s: float | None = None) -> None:
        """Run what was submitted and end the queues' threads, waiting so long for each."""
        if not self.forked:
            self.flush()
            for queue in self.queues.values():
                queue.end(timeout_s)

    # Ops.

    def _dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        special = self.transfers.special.get(func)
        if special is not None:
            return special(func, args, kwargs)
        if func.namespace == "c10d":
            return self.transfers.collective(func, args, kwargs)
        base = func._schema.name.partition("::")[2]
        if base in self.support.allocation:
            return self._allocate(func, args, kwargs)
        if self._leaves(kwargs):
            return self.transfers.fall_back(func, args, kwargs)
        if _INDEXED.fullmatch(base):
            args = map_leaves(self._index_here, args)
        check_devices(func, args, kwargs)
        return self._run(func, base, args, kwargs)

    def _run(self, func: Any, base: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func.is_view or func in _VIEWS:
            return self._view(func, args, kwargs)
        if torch.Tag.inplace_view in func.tags:
            return self._view_in_place(func, args, kwargs)
        if not self.support.falls_back(base):
            try:
                program = self.programs.get(func, args, kwargs, quiet=self.grouping is not None)
            except _NO_PROGRAM:
                program = None
            if program is not None:
                return self.submit_op(func, args, kwargs, program)
        return self.transfers.fall_back(func, args, kwargs)

    def _leaves(self, kwargs: dict[str, Any]) -> bool:
        device = kwargs.get("device")
        return device is not None and torch.device(device).type != NAME

    def _index_here(self, index: Any) -> Any:
        if isinstance(index, torch.Tensor) and not isinstance(index, NeuronTensor):
            return self.transfers.moved_in(index, 0)
        return index

    def _allocate(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._leaves(kwargs):
            return func(*map_tensors(to_meta, args), **kwargs)
        return self.empty(meta_call(func, args, kwargs), index_of(args))

    def _view(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same memory seen otherwise: nothing runs, but it comes in the queue's order."""
        base = cell_of(next(tensors_in(args)))
        meta = meta_call(func, args, kwargs)
        made = map_tensors(lambda t: NeuronTensor(t, Cell(base.storage), index_of(args)), meta)
        if self.execute or base.value is not None:
            given, named, cells = snapshot(args), snapshot(kwargs), cells_in(made)
            self._later(base, lambda: _fill(cells, func(*values(given), **values(named))))
        return return_and_correct_aliasing(func, args, kwargs, made)  # type: ignore[no-untyped-call]

    def _view_in_place(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The tensor itself seen otherwise (`unsqueeze_`, `t_`).

        It gets a cell of its own: what was submitted before sees it as it was.
        """
        tensor, rest = args[0], args[1:]
        before, after = cell_of(tensor), Cell(cell_of(tensor).storage)
        tensor.cell = after
        if before.value is not None or self.execute:
            self._later(before, lambda: _fill([after], func(before.read().detach(), *rest)))
        return return_and_correct_aliasing(func, args, kwargs, tensor)  # type: ignore[no-untyped-call]

    def _later(self, cell: Cell, task: Callable[[], None]) -> None:
        """Now if the values are there, else behind what makes them."""
        with self._submitting:
            if cell.value is not None:
                task()
            elif self.grouping is not None and self.grouping.makes(cell.storage):
                self.grouping.later(task)
            elif (written := cell.storage.written) is None or written.done:
                task()
            else:
                place = Task("a view", task, _unseen)
                ticket = written.queue.submit(place, written.modelled_end_ns)
                cell.storage.written = ticket

    def submit_op(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], program: Program
    ) -> Any:
        """Queue an eager op; what it returns has no values yet."""
        written = mutated(func, args, kwargs)
        self._check_shapes(written, program)
        is_new = _new_results(func)
        results = program.outputs if isinstance(program.outputs, tuple) else (program.outputs,)
        fresh = [r if new else None for r, new in zip(results, is_new, strict=True)]
        made = map_tensors(lambda t: self.output(t, index_of(args)), fresh)
        # a task must not hold tensors: one that something else holds is not taken as a gradient
        given, named, cells = snapshot(args), snapshot(kwargs), cells_in(made)
        changed, seed = cells_in(written), self.seed(func)
        layouts = [tensor.stride() for tensor in tensors_in(made)]

        def run() -> None:
            found = self.execute_on_host(func, values(given), values(named), seed)
            found = found if isinstance(found, tuple) else (found,)
            _fill(cells, [r for r, new in zip(found, is_new, strict=True) if new], layouts)
            for cell in changed:
                self._narrow_in_place(cell.read())

        outputs = [*written, *tensors_in(made)]
        self.submit(
            ("compute", 0),
            Job(
                name=program.name,
                kind="kernel",
                reads=self.accesses(device_tensors([args, kwargs])),
                writes=self.accesses(outputs),
                run=run,
                read_bytes=program.read_bytes,
                write_bytes=program.write_bytes,
                flops=program.flops,
                work_ns=program.work_ns,
                compute_ns=program.compute_ns,
                key=program.key,
                follow=_can_follow([args, kwargs], outputs),
            ),
        )
        returned = tuple(made) if isinstance(program.outputs, tuple) else made[0]
        return return_and_correct_aliasing(func, args, kwargs, returned)  # type: ignore[no-untyped-call]

    def accesses(self, tensors: Iterable[torch.Tensor]) -> list[Access]:
        """Memory of tensors, with the bytes of each."""
        return [(cell_of(t).storage, sizes(self.constants, iter([t]))) for t in tensors]

    def _check_shapes(self, targets: list[torch.Tensor], program: Program) -> None:
        """A program writes into memory that was laid out before it.

        Raises:
            RuntimeError: An `out=` tensor or a `resize_` asks for other sizes.
        """
        for target, meta in zip(targets, tensors_in(program.outputs), strict=False):
            if target.shape != meta.shape:
                raise RuntimeError(
                    f"{program.name} would resize a {NAME} tensor from {tuple(target.shape)} to "
                    f"{tuple(meta.shape)}: give an output of the right shape"
                )

    def output(self, meta: torch.Tensor, index: int) -> NeuronTensor:
        """A tensor that a task will fill."""
        return NeuronTensor(meta, Cell(self.storage(meta)), index)

    def seed(self, func: Any) -> int | None:
        """Where an op's random numbers start; None for one that draws none."""
        return self.generator.next_seed() if is_random(func) else None

    def execute_on_host(self, func: Any, args: Any, kwargs: Any, seed: int | None) -> Any:
        """Run an op on host tensors, in the precision of the device."""
        kwargs = on_host(kwargs)
        if seed is not None:
            return draw(func, args, kwargs, seed)
        return map_tensors(self.narrowed, func(*args, **kwargs))

    def narrowed(self, tensor: torch.Tensor) -> torch.Tensor:
        """64-bit values as the device computes them: in 32 bits."""
        name = self.constants.narrowed.get(str(tensor.dtype).removeprefix("torch."))
        return tensor if name is None else tensor.to(getattr(torch, name)).to(tensor.dtype)

    def _narrow_in_place(self, tensor: torch.Tensor) -> None:
        narrow = self.narrowed(tensor)
        if narrow is not tensor:
            tensor.copy_(narrow)

    # Queues.

    def submit(self, where: tuple[str, int], job: Job) -> Ticket | None:
        """Queue a task behind what it depends on, and log it; None where it waits for others."""
        with self._submitting:
            if self.grouping is None or not self.grouping.takes(job):
                self.flush()
                return self.place(where, job)
            if job.follow and not self.execute:
                job.run()
            self.grouping.add(job)
            return None

    def place(self, where: tuple[str, int], job: Job) -> Ticket:
        """Queue a task that needs no other to be submitted before it."""
        with self._submitting:
            if _traces():
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
            ticket = queue.submit(Task(job.name, job.run, _unseen, _dependencies(job)), 0)
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


class _Inside(threading.local):
    depth = 0


_within = _Inside()


@contextmanager
def _inside() -> Iterator[None]:
    """What runs in here is the device's doing, not the program's: the profiler sees no op."""
    _within.depth += 1
    if _within.depth == 1:
        _enable_record_function(False)  # noqa: FBT003
    try:
        yield
    finally:
        _within.depth -= 1
        if _within.depth == 0:
            _enable_record_function(True)  # noqa: FBT003


def _can_follow(inputs: Any, outputs: list[Any]) -> bool:
    """Whether a program's values are whole numbers, few, and all that it needs is known."""
    known = all(tensor.cell.value is not None for tensor in device_tensors(inputs))
    return known and all(is_small(tensor) for tensor in outputs)


def _fake_mode(args: Any, kwargs: Any) -> Any:
    """The mode that traces shapes, where one does: then an op is no work of the device."""
    fake = torch._subclasses.FakeTensor
    for tensor in tensors_in([args, kwargs]):
        if isinstance(tensor, fake):
            return tensor.fake_mode
    return None


def _faked(mode: Any, tensor: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = mode.from_tensor(tensor) if isinstance(tensor, NeuronTensor) else tensor
    return made


def _unseen(start_ns: int, end_ns: int) -> None:
    """Views take a place in the queue's order, but are no event of it."""


def _new_results(func: Any) -> list[bool]:
    """Which results of an op are new tensors, not arguments that it wrote to."""
    found = [not (r.alias_info and r.alias_info.is_write) for r in func._schema.returns]
    return found or [True]


def _fill(cells: list[Cell], results: Any, layouts: list[tuple[int, ...]] | None = None) -> None:
    for place, (cell, result) in enumerate(zip(cells, tensors_in(results), strict=True)):
        cell.value = result if layouts is None else _laid_out(result, layouts[place])


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Values in the layout that was promised for them, where a host kernel chose another."""
    pairs = zip(tensor.shape, tensor.stride(), strides, strict=True)
    if all(size <= 1 or have == promised for size, have, promised in pairs):
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)


def _traces() -> bool:
    return torch._guards.TracingContext.try_get() is not None


def _note(job: Job, ticket: Ticket) -> None:
    for storage, _ in job.reads:
        storage.note_read(ticket)
    for storage, _ in job.writes:
        storage.note_write(ticket)


def _dependencies(job: Job) -> list[Ticket]:
    found = [ticket for storage, _ in job.reads for ticket in storage.before_read()]
    return found + [ticket for storage, _ in job.writes for ticket in storage.before_write()]
