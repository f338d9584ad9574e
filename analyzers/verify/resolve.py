"""A recorded op as a call that can be made: an overload of torch.ops and its arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from neuron_explorer.analyzers.verify.indices import highest_indices
from neuron_explorer.analyzers.verify.recorded import CannotReplayError, RecordedOp, Slot
from neuron_explorer.analyzers.verify.tensors import Spec, spec

_SCALARS = frozenset({"Scalar", "Int", "Bool", "Double", "Float", "Long", "SymInt", "Complex"})
_LISTS = frozenset({"ScalarList", "IntList", "DoubleList", "BoolList", "GenericList"})
_NOT_TENSORS = _SCALARS | _LISTS | {"", "TensorList", "Device", "String", "None", "Generator"}

_SCALAR_TYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16"),
)
_LAYOUTS = ("strided",)
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_ENUMS = {"ScalarType": _SCALAR_TYPES, "Layout": _LAYOUTS, "MemoryFormat": _MEMORY_FORMATS}
"""Order of c10's enumerations, which a trace records as numbers."""

_RECORDED = frozenset({"Tensor", "int", "float", "bool", "number", "List[int]"})
"""Types that Kineto records: an empty place is none of them. Old versions left out lists."""

_GUESSED = "{op}: {argument} is not recorded, so its default was used"


@dataclass(frozen=True)
class Call:
    """An op ready to be called, once its tensors are made."""

    op: RecordedOp
    overload: Any
    arguments: tuple[tuple[str, bool, Any], ...]
    """Name, whether only by keyword, and a `Spec`, a tuple of them, or a plain value."""
    written: frozenset[str]
    """Arguments that the op writes to."""
    notes: tuple[str, ...] = ()

    def specs(self) -> Iterator[Spec]:
        for _, _, value in self.arguments:
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Spec):
                    yield item


def resolve(op: RecordedOp, device: torch.device) -> Call:
    """The overload whose arguments are those recorded.

    Raises:
        CannotReplayError: torch knows no such op, no overload takes these arguments, or one of
            them is not recorded and has no default.
    """
    if not op.slots:
        raise CannotReplayError(f"the arguments of {op.name} are not recorded")
    fitting = [
        each
        for loose in (False, True)
        for each in _overloads(op.name)
        if _fits(each, op, loose=loose)
    ]
    if not fitting:
        raise CannotReplayError(f"no overload of {op.name} takes the arguments as recorded")
    failed: list[CannotReplayError] = []
    for overload in fitting:
        try:
            return _call(overload, op, device)
        except CannotReplayError as error:
            failed.append(error)
    raise failed[0]


def _overloads(name: str) -> list[Any]:
    space, _, base = name.partition("::")
    try:
        packet = getattr(getattr(torch.ops, space), base)
    except (AttributeError, RuntimeError) as error:
        raise CannotReplayError(f"torch {torch.__version__} has no op {name}") from error
    return [getattr(packet, each) for each in packet.overloads()]


def _fits(overload: Any, op: RecordedOp, *, loose: bool) -> bool:
    """Whether the recorded arguments can be those of the overload.

    `loose`: also where one that it needs may be there, but was not recorded.
    """
    wanted = overload._schema.arguments  # noqa: SLF001  torch has no other way to ask
    return len(wanted) == len(op.slots) and all(
        _may_be(str(argument.type), slot, loose=loose)
        for argument, slot in zip(wanted, op.slots, strict=True)
    )


def _may_be(kind: str, slot: Slot, *, loose: bool) -> bool:
    """Whether a slot as recorded can be an argument of that type."""
    optional = kind.startswith("Optional[")
    inner = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    if slot.dtype == "":
        return optional or inner not in _RECORDED or (loose and inner != "Tensor")
    if inner == "Tensor":
        return slot.dtype not in _NOT_TENSORS
    if inner in {"List[Tensor]", "List[Optional[Tensor]]"}:
        return slot.dtype in {"TensorList", "GenericList"}
    if inner.startswith("List["):
        return slot.dtype in _LISTS
    return slot.dtype in _SCALARS


def _call(overload: Any, op: RecordedOp, device: torch.device) -> Call:
    schema = overload._schema  # noqa: SLF001
    notes: list[str] = []
    below = highest_indices(op)
    arguments = []
    for place, (argument, slot) in enumerate(zip(schema.arguments, op.slots, strict=True)):
        value = _argument(argument, slot, op, below.get(place, 1))
        if value is _MISSING:
            value = _default(argument, op)
            if slot.dtype in _SCALARS | _LISTS:
                notes.append(_GUESSED.format(op=op.name, argument=argument.name))
        if argument.name == "device" and value is None:
            value = device
        arguments.append((argument.name, argument.kwarg_only, value))
    return Call(op, overload, tuple(arguments), _written(schema), tuple(notes))


def _written(schema: Any) -> frozenset[str]:
    return frozenset(
        each.name
        for each in schema.arguments
        if each.alias_info is not None and each.alias_info.is_write
    )


_MISSING = object()


def _argument(argument: Any, slot: Slot, op: RecordedOp, below: int) -> Any:
    if slot.dtype not in _NOT_TENSORS:
        return spec(slot.dtype, slot.shape, slot.strides, below)
    if slot.dtype in {"TensorList", "GenericList"} and "Tensor" in str(argument.type):
        return tuple(_listed(argument, slot, op))
    if slot.value == "":
        return _MISSING
    return _scalar(slot.value, str(argument.real_type))


def _listed(argument: Any, slot: Slot, op: RecordedOp) -> Iterator[Spec]:
    """Tensors of a list; Kineto keeps no dtype for them, so that of another argument stands in."""
    if not slot.shape or not isinstance(slot.shape[0], tuple):
        raise CannotReplayError(f"{op.name}: the tensors of {argument.name} are not recorded")
    if "Optional" in str(argument.type):
        raise CannotReplayError(f"{op.name}: which of {argument.name} are tensors is not recorded")
    beside = (each.dtype for each in op.slots if each.dtype not in _NOT_TENSORS)
    dtype = next(beside, "float")
    strides = slot.strides if isinstance(slot.strides, tuple) else ()
    for place, shape in enumerate(slot.shape):
        yield spec(dtype, shape, strides[place] if place < len(strides) else None)


def _default(argument: Any, op: RecordedOp) -> Any:
    if argument.has_default_value():
        return argument.default_value
    if str(argument.type).startswith("Optional["):
        return None
    raise CannotReplayError(f"{op.name}: the trace does not record {argument.name}")


def _scalar(text: str, kind: str) -> Any:
    value = _parsed(text)
    for name, members in _ENUMS.items():
        if name in kind and isinstance(value, int) and value < len(members):
            return getattr(torch, members[value])
    if "float" in kind and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _parsed(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    try:
        return float(text)
    except ValueError as error:
        raise CannotReplayError(f"the scalar argument {text[:40]!r} cannot be read") from error
