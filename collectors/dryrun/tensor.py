"""The device's tensor: shape and type at once, values when its queue has got there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

from neuron_explorer.collectors.dryrun.queues import Storage

NAME = "neuron"
Dispatch = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class Cell:
    """Where a task leaves the values of one tensor, on the host."""

    __slots__ = ("storage", "value")

    def __init__(self, storage: Storage, value: torch.Tensor | None = None) -> None:
        self.storage = storage
        self.value = value

    def read(self) -> torch.Tensor:
        """The values.

        Raises:
            RuntimeError: The task that makes them failed.
        """
        if self.value is None:
            raise RuntimeError("a tensor was read before anything was written to it")
        return self.value


class NeuronTensor(torch.Tensor):
    """A tensor of the dry-run device, as PyTorch's own wrapper subclasses are made."""

    cell: Cell
    dispatch: Dispatch
    """What runs an op; the device sets it once."""
    _held: object
    """Keeps the storage's bytes counted while a tensor of it is alive."""

    @staticmethod
    def __new__(
        cls, like: torch.Tensor, cell: Cell, index: int = 0, *, requires_grad: bool = False
    ) -> NeuronTensor:
        made: NeuronTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            like.shape,
            strides=like.stride(),
            storage_offset=like.storage_offset(),
            dtype=like.dtype,
            device=torch.device(NAME, index),
            requires_grad=requires_grad,
        )
        made.cell = cell
        made._held = cell.storage.hold()
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        return cls.dispatch(func, args, kwargs or {})

    def __coerce_same_metadata_as_tangent__(self, meta: Any, kind: type | None = None) -> Any:
        # AOTAutograd traced a plain tensor; at run time this one stands for it
        return self

    @property
    def data(self) -> NeuronTensor:
        """The tensor without its history; setting it makes this one the other's memory."""
        found: NeuronTensor = _DATA.__get__(self)
        return found

    @data.setter
    def data(self, other: torch.Tensor) -> None:
        if not isinstance(other, NeuronTensor):
            raise RuntimeError(  # noqa: TRY004 - as torch does for another device
                f"the data of a {NAME} tensor cannot be one on {other.device}"
            )
        _DATA.__set__(self, other)
        self.cell, self._held = other.cell, other._held

    def __repr__(self, *, tensor_contents: object = None) -> str:  # type: ignore[override]
        text = repr(self.detach().cpu())
        suffix = ", requires_grad=True)" if self.requires_grad else ")"
        return f"{text[:-1]}, device='{self.device}'{suffix}"

    def __format__(self, spec: str) -> str:
        if self.dim():
            return object.__format__(self, spec)
        return format(self.detach().cpu(), spec)

    def record_stream(self, stream: Any) -> None:
        """Nothing to do: one queue runs all streams, and memory is freed behind what reads it."""

    def tolist(self) -> Any:
        """Values as Python numbers; PyTorch's own refuses subclasses."""
        return self.detach().cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Values as an array, where `force` allows the copy to the host.

        Raises:
            TypeError: Without `force`, as on every device.
        """
        if not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to "
                "copy the tensor to host memory first."
            )
        return self.detach().cpu().numpy()

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        copied: torch.Tensor = self.detach().clone().requires_grad_(self.requires_grad)
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        if isinstance(self.grad, NeuronTensor):
            copied.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        # as torch saves the tensors of every device without storages, so map_location is heeded
        if isinstance(self, torch.nn.Parameter):
            parts: Any = (self.detach(), self.requires_grad, OrderedDict())
            return torch._utils._rebuild_parameter, parts
        kept = (self.detach().cpu(), self.dtype, str(self.device), self.requires_grad)
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, kept


_DATA: Any = torch._C.TensorBase.data
