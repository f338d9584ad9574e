"""What crosses between host and device: copies, values that the host asks for, fallbacks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing

from neuron_explorer.collectors.dryrun.arguments import (
    device_tensors,
    index_of,
    is_small,
    map_tensors,
    mutated,
    tensors_in,
)
from neuron_explorer.collectors.dryrun.collectives import Collectives
from neuron_explorer.collectors.dryrun.jobs import Job
from neuron_explorer.collectors.dryrun.log import Fallback
from neuron_explorer.collectors.dryrun.programs import meta_call, sizes
from neuron_explorer.collectors.dryrun.tensor import NAME, Cell, NeuronTensor

if TYPE_CHECKING:
    from neuron_explorer.collectors.dryrun.device import Device

aten = torch.ops.aten
Special = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
_UNKNOWN = (
    "this dry run executes nothing, so the values of a tensor of {dtype} are not known and cannot "
    "decide what runs: use dryrun(execute=True)"
)


class Transfers:
    """Moves values for a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._collectives = Collectives(device)
        self.special: dict[Any, Special] = {
            aten._to_copy.default: self._to_copy,
            aten.copy_.default: self._copy,
            aten._local_scalar_dense.default: self._scalar,
            aten.equal.default: self._equal,
            aten.is_pinned.default: lambda *_: False,
            aten.resize_.default: self._resize,
        }

    def collective(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op of torch.distributed on the collective queues."""
        return self._collectives.run(func, args, kwargs)

    def close(self) -> None:
        """End what connects to other processes."""
        self._collectives.close()

    # Copies.

    def to_host(self, tensor: NeuronTensor) -> torch.Tensor:
        """Values of a tensor, on the host; waits for them.

        Raises:
            RuntimeError: Nothing is executed and they are whole numbers that are not known.
        """
        found: list[torch.Tensor] = []
        cell = tensor.cell
        self._device.wait(self._read(tensor, lambda: found.append(cell.read().clone())))
        if found:
            return found[0]
        if cell.value is not None:
            return cell.value.clone()
        if not tensor.dtype.is_floating_point:
            raise RuntimeError(_UNKNOWN.format(dtype=tensor.dtype))
        unknown = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        return unknown.fill_(float("nan"))

    def _read(self, tensor: NeuronTensor, run: Callable[[], None]) -> Any:
        nbytes = sizes(self._device.constants, iter([tensor]))
        job = Job(
            name="copy device to host",
            kind="memcpy",
            reads=[(tensor.cell.storage, nbytes)],
            writes=[],
            run=run,
            read_bytes=nbytes,
            write_bytes=nbytes,
        )
        return self._device.submit(("copy", 1), job)

    def to_device(self, target: NeuronTensor, source: torch.Tensor, *, wait: bool) -> None:
        """Copy from the host; without waiting, the source is copied first."""
        cell, layout = target.cell, (target.shape, target.stride(), target.dtype)
        held = source.detach() if wait else source.detach().clone()
        ticket = self._write(target, lambda: _overwrite(cell, layout, self._device.narrowed(held)))
        if wait:
            self._device.wait(ticket)

    def _write(self, target: NeuronTensor, run: Callable[[], None], *, known: bool = True) -> Any:
        nbytes = sizes(self._device.constants, iter([target]))
        job = Job(
            name="copy host to device",
            kind="memcpy",
            reads=[],
            writes=[(target.cell.storage, nbytes)],
            run=run,
            read_bytes=nbytes,
            write_bytes=nbytes,
            follow=known and is_small(target),
        )
        return self._device.submit(("copy", 0), job)

    def moved_in(self, source: torch.Tensor, index: int) -> NeuronTensor:
        """A new tensor of the device with values of the host."""
        target = self._device.empty(source, index)
        self.to_device(target, source, wait=True)
        return target

    # Fallbacks.

    def fall_back(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op on the host: every input copied out, the op run, every output copied in."""
        start = time.time_ns()
        stays = _stays(kwargs)
        if self._device.execute or _all_known([args, kwargs]):
            targets, made = self._on_values(func, args, kwargs)
        else:
            targets, made = self._on_shapes(func, args, kwargs)
        if not stays:
            return made
        copied = sizes(self._device.constants, iter(device_tensors([args, kwargs])))
        copied += sizes(self._device.constants, iter(targets or tensors_in(made)))
        tid = threading.get_native_id()
        self._device.log.fallbacks.append(
            Fallback(func._schema.name, start, time.time_ns(), tid, copied)
        )
        return return_and_correct_aliasing(func, args, kwargs, made)  # type: ignore[no-untyped-call]

    def _on_values(self, func: Any, args: Any, kwargs: Any) -> tuple[list[torch.Tensor], Any]:
        hosts: dict[int, torch.Tensor] = {}

        def out(tensor: torch.Tensor) -> torch.Tensor:
            if isinstance(tensor, NeuronTensor):
                return hosts.setdefault(id(tensor), self.to_host(tensor))
            return tensor

        host_args, host_kwargs = map_tensors(out, args), map_tensors(out, kwargs)
        seed = self._device.seed(func)
        given = host_kwargs if _stays(kwargs) else {}
        result = (
            self._device.execute_on_host(func, host_args, given, seed)
            if _stays(kwargs)
            else func(*host_args, **host_kwargs)
        )
        targets = mutated(func, args, kwargs)
        for target in targets:
            if isinstance(target, NeuronTensor):
                _check_size(func, target, hosts[id(target)])
                self.to_device(target, hosts[id(target)], wait=True)
        if targets or not _stays(kwargs):
            return targets, result
        return [], map_tensors(lambda t: self.moved_in(t, index_of(args)), result)

    def _on_shapes(self, func: Any, args: Any, kwargs: Any) -> tuple[list[torch.Tensor], Any]:
        """The same without values: the copies are submitted, and what they move is unknown."""
        try:
            meta = meta_call(func, args, kwargs)
        except Exception as error:
            raise RuntimeError(
                f"{func._schema.name} needs values to know its result's shape, and this dry run "
                "executes nothing: use dryrun(execute=True)"
            ) from error
        for tensor in device_tensors([args, kwargs]):
            self._device.wait(self._read(tensor, _nothing))
        targets = mutated(func, args, kwargs)
        made = meta if targets else map_tensors(self._unknown(index_of(args)), meta)
        for target in device_tensors(targets or made):
            target.cell.value = None
            self._device.wait(self._write(target, _nothing, known=False))
        return targets, made

    def _unknown(self, index: int) -> Callable[[torch.Tensor], NeuronTensor]:
        return lambda meta: self._device.output(meta, index)

    # Ops that need more than a program.

    def _to_copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is not None and torch.device(device).type != NAME:
            rest = {k: v for k, v in kwargs.items() if k not in ("non_blocking", "pin_memory")}
            return func(self.to_host(args[0]), **rest)
        rest = {k: v for k, v in kwargs.items() if k not in ("device", "non_blocking")}
        return self._program(func, args, rest)

    def _copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        target, source = args[0], args[1]
        waits = not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        if not isinstance(target, NeuronTensor):
            return target.copy_(self.to_host(source))
        if not isinstance(source, NeuronTensor):
            torch.broadcast_shapes(target.shape, source.shape)  # type: ignore[no-untyped-call]
            self.to_device(target, source, wait=waits)
            return target
        return self._program(func, args, kwargs)

    def _program(self, func: Any, args: Any, kwargs: Any) -> Any:
        device = self._device
        program = device.programs.get(func, args, kwargs, quiet=device.grouping is not None)
        return device.submit_op(func, args, kwargs, program)

    def _scalar(self, func: Any, args: Any, kwargs: Any) -> Any:  # noqa: ARG002
        return func(self.to_host(args[0]))

    def _equal(self, func: Any, args: Any, kwargs: Any) -> Any:  # noqa: ARG002
        if not self._device.execute and not _all_known(args):
            raise RuntimeError(_UNKNOWN.format(dtype=args[0].dtype))
        return func(*(self.to_host(a) if isinstance(a, NeuronTensor) else a for a in args))

    def _resize(self, func: Any, args: Any, kwargs: Any) -> Any:  # noqa: ARG002
        if list(args[0].shape) == list(args[1]):
            return args[0]
        raise RuntimeError(
            f"a {NAME} tensor cannot be resized from {tuple(args[0].shape)} to {tuple(args[1])}: "
            "its programs have static shapes, so make a new tensor"
        )


def _stays(kwargs: dict[str, Any]) -> bool:
    device = kwargs.get("device")
    return device is None or torch.device(device).type == NAME


def _all_known(given: Any) -> bool:
    return all(tensor.cell.value is not None for tensor in device_tensors(given))


def _nothing() -> None:
    """What a copy does where there are only shapes."""


def _check_size(func: Any, target: torch.Tensor, result: torch.Tensor) -> None:
    if target.shape != result.shape:
        raise RuntimeError(
            f"{func._schema.name} would resize a {NAME} tensor from {tuple(target.shape)} to "
            f"{tuple(result.shape)}: give an output of the right shape"
        )


def _overwrite(cell: Cell, layout: tuple[Any, ...], source: torch.Tensor) -> None:
    if cell.value is None:
        shape, strides, dtype = layout
        cell.value = torch.empty_strided(shape, strides, dtype=dtype)
    cell.value.copy_(source)
