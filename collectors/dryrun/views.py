"""Views: a tensor's memory seen otherwise. Nothing runs, but each comes in the queue's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import return_and_correct_aliasing

from neuron_explorer.collectors.dryrun.arguments import (
    cell_of,
    cells_in,
    fill,
    index_of,
    map_tensors,
    snapshot,
    tensors_in,
    values,
)
from neuron_explorer.collectors.dryrun.core import unseen
from neuron_explorer.collectors.dryrun.programs import meta_call
from neuron_explorer.collectors.dryrun.queues import Task
from neuron_explorer.collectors.dryrun.tensor import Cell, NeuronTensor

if TYPE_CHECKING:
    from neuron_explorer.collectors.dryrun.device import Device


class Views:
    """Makes views for a device."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def plain(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same memory seen otherwise."""
        base = cell_of(next(tensors_in(args)))
        meta = meta_call(func, args, kwargs)
        made = map_tensors(lambda t: NeuronTensor(t, Cell(base.storage), index_of(args)), meta)
        if self._device.execute or base.value is not None:
            given, named, cells = snapshot(args), snapshot(kwargs), cells_in(made)
            self._later(base, lambda: fill(cells, func(*values(given), **values(named))))
        return return_and_correct_aliasing(func, args, kwargs, made)  # type: ignore[no-untyped-call]

    def in_place(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The tensor itself seen otherwise (`unsqueeze_`, `t_`).

        It gets a cell of its own: what was submitted before sees it as it was.
        """
        tensor, rest = args[0], args[1:]
        before, after = cell_of(tensor), Cell(cell_of(tensor).storage)
        tensor.cell = after
        if before.value is not None or self._device.execute:
            self._later(before, lambda: fill([after], func(before.read().detach(), *rest)))
        return return_and_correct_aliasing(func, args, kwargs, tensor)  # type: ignore[no-untyped-call]

    def _later(self, cell: Cell, task: Callable[[], None]) -> None:
        """Now if the values are there, else behind what makes them."""
        with self._device.submitting:
            if cell.value is not None:
                task()
            elif self._device.grouping is not None and self._device.grouping.makes(cell.storage):
                self._device.grouping.later(task)
            elif (written := cell.storage.written) is None or written.done:
                task()
            else:
                place = Task("a view", task, unseen)
                ticket = written.queue.submit(place, written.modelled_end_ns)
                cell.storage.written = ticket
