"""Collectives between the processes of one machine, on the device's collective queues.

The ops of torch.distributed arrive like any other; order and waits are those of the device's
queues. Their values are exchanged on the host by gloo, for each process group over connections
of its own: the host's collectives of the same group need not wait for the queues.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (  # type: ignore[attr-defined]
    PrefixStore,
    ProcessGroup,
    Work,
    _create_work_from_future,
)
from torch.futures import Future

from neuron_explorer.collectors.dryrun.arguments import (
    device_tensors,
    is_small,
    snapshot,
    values,
)
from neuron_explorer.collectors.dryrun.collective_cost import link_cost
from neuron_explorer.collectors.dryrun.jobs import Job

if TYPE_CHECKING:
    from neuron_explorer.collectors.dryrun.device import Device
    from neuron_explorer.collectors.dryrun.tensor import NeuronTensor

_TIMEOUT = timedelta(minutes=30)
_BOTH = ("allreduce_", "allreduce_coalesced_", "broadcast_", "reduce_")
_READ_ONLY = ("send", "barrier", "monitored_barrier_")
"""All others write their first argument and read their second."""


class Collectives:
    """Runs collectives of a device; those of one process group in their order."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._groups: dict[str, int] = {}
        # a group that is destroyed takes its link along: another may have its name
        self._links: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Queue a collective; what it returns need not be waited for, as its queue orders it."""
        base = func._schema.name.partition("::")[2]
        read, written = _traffic(base, args)
        group = next(ProcessGroup.unbox(a) for a in args if _is_group(a))
        given, named = snapshot(args), snapshot(kwargs)

        def run() -> None:
            link = self._link(group)
            here = [link if _is_group(value) else value for value in values(given)]
            found = func(*here, **values(named))
            works = found if isinstance(found, tuple) else (found,)
            for work in works:
                if hasattr(work, "wait"):
                    work.wait()

        device = self._device
        reads, writes = device.accesses(read), device.accesses(written)
        read_bytes, write_bytes = (sum(nbytes for _, nbytes in side) for side in (reads, writes))
        cost = link_cost(device.constants, base, read_bytes, write_bytes, group.size())
        device.submit(
            ("collective", self._number(group)),
            Job(
                name=func._schema.name,
                kind="collective",
                reads=reads,
                writes=writes,
                run=run,
                read_bytes=read_bytes,
                write_bytes=write_bytes,
                work_ns=cost.transfer_ns if cost else 0,
                latency_ns=cost.latency_ns if cost else 0,
                known=cost is not None,
                follow=all(is_small(t) and t.cell.value is not None for t in [*read, *written]),
            ),
        )
        return _returned(func, args, written)

    def _number(self, group: Any) -> int:
        """One queue for each group: two ranks must not exchange in different orders."""
        place = self._groups.setdefault(group.group_name, len(self._groups))
        return place % self._device.constants.queues["collective"]

    def _link(self, group: Any) -> Any:
        """The group's own gloo, made when all ranks come to their first collective."""
        if group not in self._links:
            self._links[group] = _gloo(group).boxed()
        return self._links[group]

    def close(self) -> None:
        """End the links' threads: one at work when the interpreter goes would abort the process."""
        self._links.clear()


def _gloo(group: Any) -> Any:
    name = f"neuron dry run {group.group_name}"
    whole = dist.distributed_c10d._get_process_group_store(group)
    store = PrefixStore(name, whole)
    made = ProcessGroup(store, group.rank(), group.size())
    gloo = dist.ProcessGroupGloo(store, group.rank(), group.size(), _TIMEOUT)
    made._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, gloo)
    made._set_default_backend(ProcessGroup.BackendType.GLOO)
    return made


def _is_group(value: Any) -> bool:
    return "ProcessGroup" in str(getattr(value, "_type", lambda: "")())


def _traffic(base: str, args: tuple[Any, ...]) -> tuple[list[NeuronTensor], list[NeuronTensor]]:
    first = device_tensors(args[0])
    if base in _BOTH:
        return first, first
    if base in _READ_ONLY:
        return first, []
    return device_tensors(args[1]), first


def _returned(func: Any, args: tuple[Any, ...], written: list[NeuronTensor]) -> Any:
    """What the op returns, with work that has ended: what reads its result comes behind it."""
    results = func._schema.returns
    if not results:
        return None
    ended: Future[list[NeuronTensor]] = Future()
    ended.set_result(written)
    work = Work.boxed(_create_work_from_future(ended))
    return work if len(results) == 1 else (args[0], work)
