"""The dry-run device: every op that reaches it becomes a task of a queue, or falls back.

Eager: one program an op. Values come later, in the order of the queue; whatever needs them
on the host waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing

from neuron_explorer.collectors.dryrun.arguments import (
    cell_of,
    cells_in,
    check_devices,
    device_tensors,
    fill,
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
from neuron_explorer.collectors.dryrun.core import Core
from neuron_explorer.collectors.dryrun.jobs import Access, Job
from neuron_explorer.collectors.dryrun.programs import Program, meta_call, sizes, to_meta
from neuron_explorer.collectors.dryrun.queues import Memory, Storage
from neuron_explorer.collectors.dryrun.seeds import Generator, draw, is_random
from neuron_explorer.collectors.dryrun.tensor import NAME, Cell, NeuronTensor
from neuron_explorer.collectors.dryrun.tracing import fake_mode, faked, unseen_by_profiler
from neuron_explorer.collectors.dryrun.transfers import Transfers
from neuron_explorer.collectors.dryrun.views import Views

aten = torch.ops.aten
_VIEWS = frozenset({aten._unsafe_view.default})
"""Ops that PyTorch's schema does not call views, though nothing is moved."""
_INDEXED = re.compile(r"_?(unsafe_)?index(_put)?(_impl)?_?")
"""Ops whose indices PyTorch takes from the host as well."""
_NO_PROGRAM = (NotImplementedError, torch._subclasses.fake_tensor.DataDependentOutputException)


class Device(Core):
    """All logical cores of one chip, as one process sees them."""

    def __init__(
        self,
        constants: Constants,
        support: Support,
        *,
        execute: bool = True,
        adaptive: bool = False,
    ) -> None:
        super().__init__(constants, execute=execute, adaptive=adaptive)
        self.support = support
        self.generator = Generator()
        self.memory = Memory()
        self.transfers = Transfers(self)
        self._views = Views(self)
        self.forked = False
        """Whether this is a child of the process that the device belongs to."""

    # What PyTorch calls.

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one op of which an argument lies on the device.

        Raises:
            RuntimeError: This is a forked child, tensors lie on several devices, or the op
                cannot run on the device.
        """
        if traced_by := fake_mode(args, kwargs):
            given, named = map_tensors(lambda t: faked(traced_by, t), (args, kwargs))
            with traced_by:
                return func(*given, **named)
        if self.forked:
            raise RuntimeError(
                f"a forked process cannot use the {NAME} device of its parent: move tensors to "
                "it in the parent, or start workers with multiprocessing_context='spawn'"
            )
        with unseen_by_profiler():
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

    def close(self, timeout_s: float | None = None) -> None:
        """Run what was submitted and end all threads, waiting so long for each queue's."""
        if not self.forked:
            super().close(timeout_s)
            self.transfers.close()

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
            return self._views.plain(func, args, kwargs)
        if torch.Tag.inplace_view in func.tags:
            return self._views.in_place(func, args, kwargs)
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
            fill(cells, [r for r, new in zip(found, is_new, strict=True) if new], layouts)
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


def _can_follow(inputs: Any, outputs: list[Any]) -> bool:
    """Whether a program's values are whole numbers, few, and all that it needs is known."""
    known = all(tensor.cell.value is not None for tensor in device_tensors(inputs))
    return known and all(is_small(tensor) for tensor in outputs)


def _new_results(func: Any) -> list[bool]:
    """Which results of an op are new tensors, not arguments that it wrote to."""
    found = [not (r.alias_info and r.alias_info.is_write) for r in func._schema.returns]
    return found or [True]
