"""`torch.neuron`: the functions that scripts and PyTorch itself expect of a device."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from neuron_explorer.collectors.dryrun.device import Device
from neuron_explorer.collectors.dryrun.queues import Task
from neuron_explorer.collectors.dryrun.tensor import NAME

Current = Callable[[], Device]


def runtime_module(current: Current) -> Any:
    """The module, of the device that `current` gives."""
    module: Any = types.ModuleType(f"torch.{NAME}")
    for group in (_state(), _randomness(current), _memory(current), _streams(current)):
        for name, function in group.items():
            setattr(module, name, function)
    module._is_in_bad_fork = lambda: current().forked
    return module


def _state() -> dict[str, Any]:
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_initialized": True,
        "init": lambda: None,
        "current_device": lambda: 0,
        "set_device": _only_device,
        "device": _on_device,
        "device_count": lambda: 1,
        "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16],
        "is_bf16_supported": lambda: True,
    }


def _only_device(device: Any) -> None:
    """One device a process, as documented: it is the one that there is."""
    found = torch.device(device) if isinstance(device, str | torch.device) else None
    number = found.index or 0 if found else device
    if number != 0:
        raise RuntimeError(f"this process has one {NAME} device, number 0, and no {number}")


@contextmanager
def _on_device(device: Any) -> Iterator[None]:
    if not (isinstance(device, int) and device < 0):
        _only_device(device)
    yield


def _randomness(current: Current) -> dict[str, Any]:
    def manual_seed(seed: int) -> None:
        current().generator.manual_seed(seed)

    def seed() -> int:
        return current().generator.seed()

    def initial_seed() -> int:
        return current().generator.initial_seed()

    def get_state(device: Any = NAME) -> torch.Tensor:  # noqa: ARG001 - there is one
        return current().generator.get_state()

    def set_state(state: torch.Tensor, device: Any = NAME) -> None:  # noqa: ARG001
        current().generator.set_state(state)

    return {
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed,
        "seed": seed,
        "seed_all": seed,
        "initial_seed": initial_seed,
        "get_rng_state": get_state,
        "set_rng_state": set_state,
    }


def _memory(current: Current) -> dict[str, Any]:
    def allocated(device: Any = None) -> int:  # noqa: ARG001
        """Bytes of all living tensors, as the device keeps them."""
        return current().memory.allocated

    def peak(device: Any = None) -> int:  # noqa: ARG001
        """The most bytes of living tensors so far."""
        return current().memory.peak

    def reset(device: Any = None) -> None:  # noqa: ARG001
        current().memory.reset_peak()

    return {
        "memory_allocated": allocated,
        "max_memory_allocated": peak,
        "reset_peak_memory_stats": reset,
        "empty_cache": lambda: None,
    }


def _streams(current: Current) -> dict[str, Any]:
    class Stream(_Stream):
        device_of = staticmethod(current)

    class Event(_Event):
        device_of = staticmethod(current)

    Stream.event_class = Event

    def synchronize(device: Any = None) -> None:  # noqa: ARG001
        current().synchronize()

    def the_stream(device: Any = None) -> Stream:
        return Stream(device)

    @contextmanager
    def stream(given: Any) -> Iterator[None]:  # noqa: ARG001 - all are one queue
        yield

    return {
        "Stream": Stream,
        "Event": Event,
        "stream": stream,
        "current_stream": the_stream,
        "default_stream": the_stream,
        "set_stream": lambda _stream: None,
        "synchronize": synchronize,
    }


class _Stream:
    """An order of work; the modelled core has one compute queue, so all streams share it."""

    device_of: Current
    event_class: type[_Event]

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = torch.device(NAME, torch.device(device or NAME).index or 0)
        self.priority = priority

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing to do: what was submitted in here is in the one queue."""

    def synchronize(self) -> None:
        self.device_of().synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Nothing to do: one queue runs both in order."""

    def wait_event(self, event: Any) -> None:
        """Nothing to do: one queue runs both in order."""

    def record_event(self, event: Any = None) -> Any:
        event = event or self.event_class()
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether everything submitted has run."""
        device = self.device_of()
        device.flush()
        return all(queue.idle for queue in device.queues.values())


class _Event:
    """A point in the compute queue's order."""

    device_of: Current

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002
        self.enable_timing = enable_timing
        self._number = 0
        self._ended_ns: int | None = None

    def record(self, stream: Any = None) -> None:  # noqa: ARG002
        """Put it behind everything submitted."""
        self._ended_ns = None

        def note(_began_ns: int, ended_ns: int) -> None:
            self._ended_ns = ended_ns

        device = self.device_of()
        device.flush()
        queue = device.queues["compute", 0]
        ticket = queue.submit(Task("an event", lambda: None, note), queue.free_ns)
        self._number = ticket.number

    def wait(self, stream: Any = None) -> None:
        """Nothing to do: one queue runs all streams in order."""

    def query(self) -> bool:
        """Whether the queue has got there."""
        return self.device_of().queues["compute", 0].finished >= self._number

    def synchronize(self) -> None:
        """Wait until the queue has got there."""
        self.device_of().queues["compute", 0].wait(self._number)

    def elapsed_time(self, end: _Event) -> float:
        """Milliseconds between two recorded events, by this machine's clock.

        Raises:
            RuntimeError: One of them has not been reached, or was made without timing.
        """
        if not (self.enable_timing and end.enable_timing):
            raise RuntimeError("both events must be made with enable_timing=True")
        if self._ended_ns is None or end._ended_ns is None:
            raise RuntimeError("both events must have been recorded and reached")
        return (end._ended_ns - self._ended_ns) / 1e6
