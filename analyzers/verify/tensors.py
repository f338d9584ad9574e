"""Tensors made anew: recorded shape, dtype and strides, values that no op chokes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from neuron_explorer.analyzers.verify.recorded import CannotReplayError

_NAMES: dict[torch.dtype, str] = {
    torch.float32: "float|float32",
    torch.float64: "double|float64",
    torch.bfloat16: "c10::BFloat16|at::BFloat16|bfloat16",
    torch.float16: "c10::Half|at::Half|half|float16",
    torch.int64: "long int|long|long long|int64",
    torch.int32: "int|int32",
    torch.int16: "short int|short|int16",
    torch.int8: "signed char|int8",
    torch.uint8: "unsigned char|uint8",
    torch.bool: "bool",
    torch.complex64: "c10::complex<float>|complex64",
    torch.complex128: "c10::complex<double>|complex128",
    torch.float8_e4m3fn: "c10::Float8_e4m3fn|float8_e4m3fn",
    torch.float8_e5m2: "c10::Float8_e5m2|float8_e5m2",
}

DTYPES: dict[str, torch.dtype] = {
    name: dtype for dtype, names in _NAMES.items() for name in names.split("|")
}
"""A dtype by the names that Kineto has given it."""


@dataclass(frozen=True)
class Spec:
    """A tensor to make."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; 0 where it is expanded."""
    dtype: torch.dtype
    below: int = 1
    """Integers lie in [0, below): an index never points past what it indexes."""

    @property
    def elements(self) -> int:
        """Elements of the memory it spans."""
        if 0 in self.shape:
            return 0
        reach = ((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return 1 + sum(reach)

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.itemsize


def spec(dtype: str, shape: Sequence[int], strides: Sequence[int] | None, below: int = 1) -> Spec:
    """What to make for a recorded tensor; contiguous where no strides were recorded.

    Raises:
        CannotReplayError: The dtype is none of torch's, or the strides do not fit.
    """
    known = DTYPES.get(dtype)
    if known is None:
        raise CannotReplayError(f"the dtype {dtype} cannot be made here")
    dense = tuple(contiguous_strides(shape))
    laid = dense if strides is None or len(strides) != len(shape) else tuple(strides)
    if any(stride < 0 for stride in laid):
        raise CannotReplayError(f"the strides {list(laid)} are negative")
    return Spec(tuple(shape), laid, known, max(below, 1))


def make(wanted: Spec, device: torch.device) -> torch.Tensor:
    """A tensor of that layout; floats in [0.5, 1.5): no logarithm or division goes wrong."""
    memory = _values(wanted, device)
    return memory.as_strided(wanted.shape, wanted.strides)


def _values(wanted: Spec, device: torch.device) -> torch.Tensor:
    size = (max(wanted.elements, 1),)
    if wanted.dtype == torch.bool:
        return torch.rand(size, device=device) < 0.5
    if wanted.dtype.is_floating_point or wanted.dtype.is_complex:
        return (torch.rand(size, device=device) + 0.5).to(wanted.dtype)
    return torch.randint(wanted.below, size, device=device).to(wanted.dtype)


def contiguous_strides(shape: Sequence[int]) -> list[int]:
    strides, reach = [], 1
    for size in reversed(shape):
        strides.append(reach)
        reach *= max(size, 1)
    return strides[::-1]
