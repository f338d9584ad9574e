"""The device's registration with PyTorch: name, hooks, allocation, process groups.

PyTorch has one place for such a device in a process (PrivateUse1). Registering one relabels
the activities of CUDA in torch.profiler, so it is refused where CUDA is present.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from neuron_explorer.collectors.dryrun import autocast, backend
from neuron_explorer.collectors.dryrun.device import Device
from neuron_explorer.collectors.dryrun.moving import allow_watched_moves
from neuron_explorer.collectors.dryrun.runtime_module import runtime_module
from neuron_explorer.collectors.dryrun.tensor import NAME, NeuronTensor
from neuron_explorer.errors import DeviceError

_REAL = ("torch_neuronx", "libtorch_neuronx_lite")
_kept: list[Any] = []
"""Registrations live as long as the process: PyTorch keeps no reference to them."""
Current = Callable[[], Device]


def check_free() -> None:
    """Make sure that the process has room for a dry-run device.

    Raises:
        DeviceError: A real Neuron device, another PrivateUse1 device or CUDA is there.
    """
    if any(name in sys.modules or find_spec(name) for name in _REAL):
        raise DeviceError(
            "a real Neuron back end is installed here, and a dry run would take its place",
            hint="run on the device itself, or in an environment without torch-neuronx",
        )
    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", NAME):
        raise DeviceError(f"the device {taken!r} already holds PyTorch's place for such devices")
    if torch.cuda.is_available():
        raise DeviceError(
            "CUDA is present: registering another device would relabel its activities in "
            "torch.profiler",
            hint="hide it with CUDA_VISIBLE_DEVICES= for the dry run",
        )


def register(current: Current) -> None:
    """Register the device; `current` gives the one that runs."""
    from torch.utils.backend_registration import (
        _setup_privateuseone_for_python_backend as set_up,
    )

    set_up(NAME, backend_module=runtime_module(current))
    NeuronTensor.dispatch = staticmethod(
        lambda func, args, kwargs: current().dispatch(func, args, kwargs)
    )
    _kept.extend([*_kernels(current), *autocast.register()])
    backend.register(current)
    _register_process_groups()
    register_optimizer_step_post_hook(lambda *_: _count_step(current()))
    torch.__future__.set_swap_module_params_on_conversion(True)
    allow_watched_moves()
    # a device guard made in Python can neither wait, give streams nor count memory
    for name in _OF_THE_DEVICE:
        setattr(torch.accelerator, name, getattr(torch.get_device_module(NAME), name))
    os.register_at_fork(after_in_child=lambda: _leave_to_parent(current()))
    atexit.register(lambda: current().close())


_OF_THE_DEVICE = (
    "synchronize",
    "current_stream",
    "set_stream",
    "empty_cache",
    "memory_allocated",
    "max_memory_allocated",
    "reset_peak_memory_stats",
)
"""Functions of `torch.accelerator` that ask `torch.neuron`."""


def _count_step(device: Device) -> None:
    device.programs.generation += 1


def _leave_to_parent(device: Device) -> None:
    """A forked child has none of the queues' threads, and locks as they were."""
    device.forked = True
    device.memory.unlock()


def _kernels(current: Current) -> list[Any]:
    library: Any = torch.library.Library("aten", "IMPL", "PrivateUse1")  # type: ignore[no-untyped-call]
    library.impl("empty.memory_format", _empty(current))
    library.impl("empty_strided", _empty_strided(current))
    library.impl("_copy_from", _copy_from(current))
    for name in _FACTORIES:
        library.impl(name, _factory(current, name))
    of_host: Any = torch.library.Library("aten", "IMPL", "CPU")  # type: ignore[no-untyped-call]
    of_host.impl("_pin_memory", _pin_memory)
    others: Any = torch.library.Library("_", "IMPL", "PrivateUse1")  # type: ignore[no-untyped-call]
    others.fallback(lambda func, *args, **kwargs: current().dispatch(func, args, kwargs))
    return [library, of_host, others]


def _empty(current: Current) -> Callable[..., NeuronTensor]:
    def empty(
        size: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
    ) -> NeuronTensor:
        _check_plain(layout, pin_memory)
        given = {"memory_format": memory_format} if memory_format is not None else {}
        meta = torch.empty(size, dtype=dtype, device="meta", **given)
        return current().empty(meta, _index(device))

    return empty


def _empty_strided(current: Current) -> Callable[..., NeuronTensor]:
    def empty_strided(
        size: Any,
        stride: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> NeuronTensor:
        _check_plain(layout, pin_memory)
        meta = torch.empty_strided(size, stride, dtype=dtype, device="meta")
        return current().empty(meta, _index(device))

    return empty_strided


def _check_plain(layout: Any, pin_memory: Any) -> None:
    if layout not in (None, torch.strided) or pin_memory:
        raise RuntimeError(f"a {NAME} tensor is dense, and only the host's memory can be pinned")


_FACTORIES = [
    "arange",
    "arange.start",
    "arange.start_step",
    "linspace",
    "logspace",
    "range",
    "range.step",
    "eye",
    "eye.m",
    "tril_indices",
    "triu_indices",
    "randperm",
    "full",
    "zeros",
    "ones",
    "scalar_tensor",
]
"""Ops that make a tensor of no other: PyTorch's own would resize an empty one."""


def _factory(current: Current, name: str) -> Callable[..., Any]:
    base, _, overload = name.partition(".")
    func = getattr(getattr(torch.ops.aten, base), overload or "default")

    def make(*args: Any, **kwargs: Any) -> Any:
        return current().dispatch(func, args, kwargs)

    return make


def _copy_from(current: Current) -> Callable[..., Any]:
    """What PyTorch calls where it leaves subclasses out, as `torch.tensor(..., device=)` does."""

    def copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:  # noqa: FBT001, FBT002
        func = torch.ops.aten.copy_.default
        return current().dispatch(func, (target, source, non_blocking), {})

    return copy_from


def _pin_memory(source: torch.Tensor, device: Any = None) -> torch.Tensor:  # noqa: ARG001
    """Pinned memory would change nothing here, but loaders ask for it."""
    return source.clone()


def _index(device: Any) -> int:
    return 0 if device is None else torch.device(device).index or 0


def _register_process_groups() -> None:
    """`init_process_group("neuron")`: values are exchanged by gloo, on one machine."""
    if not torch.distributed.is_available():
        return

    def gloo(store: Any, rank: int, size: int, timeout: Any) -> Any:
        return torch.distributed.ProcessGroupGloo(store, rank, size, timeout)

    if NAME not in torch.distributed.Backend.backend_list:
        torch.distributed.Backend.register_backend(NAME, gloo, devices=["cpu", NAME])
