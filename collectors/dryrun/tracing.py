"""What runs while something else watches: torch's tracing of shapes, and its profiler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import _enable_record_function  # type: ignore[attr-defined]

from neuron_explorer.collectors.dryrun.arguments import tensors_in
from neuron_explorer.collectors.dryrun.tensor import NeuronTensor


class _Inside(threading.local):
    depth = 0


_within = _Inside()


@contextmanager
def unseen_by_profiler() -> Iterator[None]:
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


def fake_mode(args: Any, kwargs: Any) -> Any:
    """The mode that traces shapes, where one does: then an op is no work of the device."""
    fake = torch._subclasses.FakeTensor
    for tensor in tensors_in([args, kwargs]):
        if isinstance(tensor, fake):
            return tensor.fake_mode
    return None


def faked(mode: Any, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the device as that mode knows tensors."""
    made: torch.Tensor = mode.from_tensor(tensor) if isinstance(tensor, NeuronTensor) else tensor
    return made


def torch_traces() -> bool:
    """Whether torch.compile traces: what runs then is no work of the program."""
    return torch._guards.TracingContext.try_get() is not None
