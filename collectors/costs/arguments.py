"""The recorded arguments of one op call, as formulas see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from neuron_explorer.collectors.costs import dtypes
from neuron_explorer.collectors.costs.notes import Missing

Shape: TypeAlias = tuple[int, ...]
LIST = "TensorList"


# msgspec structs, not dataclasses: an import builds millions, and these cost a tenth as much.
class Tensor(msgspec.Struct, frozen=True):
    """A tensor as the trace recorded it.

    Attributes:
        shape: Sizes; () is a 0-dim tensor.
        dtype: Kineto's name of the element type; "" = not recorded, "TensorList" = in a list.
        strides: In elements; None = not recorded, taken as dense.
    """

    shape: Shape
    dtype: str
    strides: Shape | None = None

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def stored(self) -> int:
        """Distinct elements in memory: an expanded (stride 0) dimension counts once."""
        if self.strides is None:
            return self.numel
        distinct, span = 1, 1
        for size, stride in zip(self.shape, self.strides, strict=True):
            if stride or not size:
                distinct *= size
                span += (size - 1) * abs(stride)
        return min(distinct, span) if distinct else 0

    @property
    def nbytes(self) -> int | None:
        """Bytes that have to move to touch every element; None without a known dtype."""
        size = dtypes.element_bytes(self.dtype)
        return None if size is None else self.stored * size

    @property
    def dense(self) -> bool:
        """Whether the strides are those of a contiguous tensor."""
        if self.strides is None:
            return True
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    def like(self, dtype: str | None = None) -> Tensor:
        """A dense tensor of this shape."""
        return Tensor(self.shape, self.dtype if dtype is None else dtype)


class Text(msgspec.Struct, frozen=True):
    """An argument that is no tensor; `value` is its text, "" = None or not recorded."""

    value: str


Arg: TypeAlias = Tensor | list[Tensor] | Text


class Call:
    """One op call: its name and positional arguments, out= tensors last."""

    __slots__ = ("args", "has_values", "inplace", "name")

    def __init__(self, name: str, args: list[Arg], *, has_values: bool, inplace: bool) -> None:
        self.name = name
        self.args = args
        self.has_values = has_values
        self.inplace = inplace

    def optional(self, position: int) -> Tensor | None:
        """The tensor at a position, None where there is none."""
        arg = self.args[position] if position < len(self.args) else None
        return arg if isinstance(arg, Tensor) else None

    def tensor(self, position: int) -> Tensor:
        """The tensor at a position; raises Missing where it was not recorded."""
        found = self.optional(position)
        if found is None:
            raise Missing("no_shapes" if not any(self.tensors()) else "bad_arguments")
        return found

    def tensors(self, start: int = 0, stop: int | None = None) -> list[Tensor]:
        """Every plain tensor among positions start..stop."""
        return [arg for arg in self.args[start:stop] if isinstance(arg, Tensor)]

    def list_at(self, position: int) -> list[Tensor]:
        """The tensor list at a position; raises Missing where it is cut or absent."""
        arg = self.args[position] if position < len(self.args) else None
        if not isinstance(arg, list):
            raise Missing("shape_list_truncated" if self.name.startswith("aten::") else "no_shapes")
        if not arg:
            raise Missing("shape_list_truncated")
        return arg

    def lists(self) -> list[list[Tensor]]:
        """Every tensor list, in order."""
        return [arg for arg in self.args if isinstance(arg, list)]

    def text(self, position: int) -> str:
        """The recorded text at a position, "" where it is None or absent."""
        arg = self.args[position] if position < len(self.args) else None
        return arg.value if isinstance(arg, Text) else ""

    def ints(self, position: int) -> list[int] | None:
        """The integers at a position, None for a None; raises Missing where not recorded."""
        if not self.has_values:
            raise Missing("no_values")
        body = self.text(position).strip("[]() ")
        return [int(part) for part in body.split(",")] if body else None

    def integer(self, position: int, default: int) -> int:
        """The integer at a position; `default` for None; raises Missing where not recorded."""
        found = self.ints(position)
        return default if not found else found[0]

    def flag(self, position: int) -> bool:
        """Whether a recorded flag is set; raises Missing where not recorded."""
        if not self.has_values:
            raise Missing("no_values")
        return self.text(position) in ("True", "true", "1")

    def dtype(self, position: int, default: str) -> str:
        """The dtype argument at a position, `default` where it is None."""
        return dtypes.from_enum(self.text(position)) or default


def normal_dim(dim: int, rank: int) -> int:
    """A dimension counted from the front."""
    found = dim + rank if dim < 0 else dim
    if not 0 <= found < max(rank, 1):
        raise Missing("shapes_mismatch")
    return found


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that shapes broadcast to; raises Missing where they do not."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            if size != 1 and result[place] not in (1, size):
                raise Missing("shapes_mismatch")
            if size != 1:
                result[place] = size
    return tuple(result)


def concrete(shape: Sequence[int], numel: int) -> Shape:
    """A shape argument with its -1 resolved for `numel` elements."""
    if -1 not in shape:
        return tuple(shape)
    known = math.prod(size for size in shape if size != -1)
    return tuple(numel // known if size == -1 and known else max(size, 0) for size in shape)
