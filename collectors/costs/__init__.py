"""FLOPs, bytes, output shapes and family of an op from what the trace recorded of it.

Conventions:
    A multiply-add is two FLOPs; products, convolutions and attention count as
    `torch.utils.flop_counter` counts them, all else as the module of its family says.
    Bytes are the least that must move: each input read once at its stored size (an expanded
    dimension counts once), each output written once. Caches, tiles and re-reads are left out.
    Views and allocations move nothing.
    NULL means unknown, and the note says why; `notes.NOTES` explains every code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from neuron_explorer.collectors.costs.arguments import LIST, Arg, Call, Shape, Tensor, Text
from neuron_explorer.collectors.costs.dtypes import SCALARS
from neuron_explorer.collectors.costs.notes import NOTES, Missing
from neuron_explorer.collectors.costs.registry import (
    Entry,
    FormulaError,
    Work,
    find,
    formula,
    load_user_formulas,
)

__all__ = [
    "NOTES",
    "Call",
    "Cost",
    "FormulaError",
    "Missing",
    "Tensor",
    "Work",
    "formula",
    "load_user_formulas",
    "op_cost",
    "parse_arguments",
    "unknown_cost",
]

_INT64_MAX = 2**63 - 1
_COMPILED = ("Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph")
_WRAPPERS = (
    "autograd::engine::",
    "torch::autograd::",
    "Optimizer.",
    "ProfilerStep",
    "enumerate(DataLoader)",
    "torch::jit::",
)

_NO_TENSOR = SCALARS | {""}

_Nested = list[list[int | list[int]]]
_shapes = msgspec.json.Decoder(_Nested)
_types = msgspec.json.Decoder(list[str | list[str] | None])
_values = msgspec.json.Decoder(list[object])
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Cost:
    """What one call of an op costs. A None is unknown, and `note` says why."""

    flops: int | None
    """A multiply-add counts as two."""
    read_bytes: int | None
    write_bytes: int | None
    output_shapes: str | None
    """Compact JSON list of shapes."""
    family: str | None
    via: str | None
    """formula or meta; None where neither FLOPs nor bytes are known."""
    note: str | None
    """Codes of `NOTES`, joined by `; `."""


def op_cost(
    name: str,
    shapes: str | None,
    dtypes: str | None,
    strides: str | None,
    values: str | None,
    *,
    list_dtype: str | None = None,
) -> Cost:
    """Cost of one recorded op call. Pure; never raises: the note says what went wrong.

    Args:
        name: Name as recorded, `aten::add`.
        shapes: `input_shapes` of the event table, JSON text.
        dtypes: `input_dtypes`, JSON text.
        strides: `input_strides`, JSON text.
        values: `input_values`, JSON text.
        list_dtype: Element type of tensors in lists, which torch does not record, where the
            caller knows it (from the op that made or took them).
    """
    entry = find(name)
    if entry is None:
        return unknown_cost(_why_no_formula(name))
    args: list[Arg] = []
    try:
        args, assumed = parse_arguments((shapes, dtypes, strides, values), list_dtype)
        call = Call(name, args, has_values=values is not None, inplace=entry.inplace)
        return _cost(entry, entry.formula(call), assumed)
    except Missing as missing:
        return unknown_cost(missing.code, entry.family)
    except Exception:  # noqa: BLE001 - a user's formula may raise anything; the note says so
        seen = any(not isinstance(arg, Text) for arg in args)
        return unknown_cost("bad_arguments" if seen else "no_shapes", entry.family)


def _why_no_formula(name: str) -> str:
    if name.startswith(_COMPILED):
        return "compiled_region"
    wraps = name.startswith(_WRAPPERS) or name.rstrip("0123456789").endswith("Backward")
    return "wrapper" if wraps else "no_formula"


def unknown_cost(code: str, family: str | None = None) -> Cost:
    """A cost of which nothing is known but why."""
    return Cost(None, None, None, None, family, None, code)


def parse_arguments(
    texts: tuple[str | None, str | None, str | None, str | None], list_dtype: str | None
) -> tuple[list[Arg], tuple[str, ...]]:
    """Arguments of a call, and what had to be assumed of them; raises Missing."""
    shapes_text, dtypes_text, strides_text, values_text = texts
    if not shapes_text:
        raise Missing("no_shapes")
    try:
        shapes = _shapes.decode(shapes_text)
        strides = _shapes.decode(strides_text) if strides_text else []
        dtypes = _types.decode(dtypes_text) if dtypes_text else []
        values = _values.decode(values_text) if values_text else []
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Missing("bad_shapes") from None
    count = len(shapes)
    strides += [[]] * (count - len(strides))
    dtypes += [""] * (count - len(dtypes))
    values += [""] * (count - len(values))
    args = [
        _argument(shape, dtype or "", stride, value, list_dtype or LIST)
        for shape, dtype, stride, value in zip(shapes, dtypes, strides, values, strict=False)
    ]
    assumed = [] if strides_text else ["dense_assumed"]
    if list_dtype and any(isinstance(arg, list) for arg in args):
        assumed.append("list_dtype_inferred")
    return args, tuple(assumed)


def _argument(
    shape: list[int | list[int]],
    dtype: str | list[str],
    strides: list[int | list[int]],
    value: object,
    list_dtype: str,
) -> Arg:
    if not shape and isinstance(dtype, str) and dtype in _NO_TENSOR:
        return Text(value if isinstance(value, str) else str(value))
    if dtype == LIST or isinstance(dtype, list) or isinstance(shape[0] if shape else 0, list):
        return _tensor_list(shape, dtype, strides, list_dtype)
    return _tensor(shape, dtype, strides)


def _tensor(shape: Sequence[object], dtype: str | list[str], strides: Sequence[object]) -> Tensor:
    # the decoder lets nothing but integers and lists through; a mix fails in min()
    sizes, steps = cast(Shape, tuple(shape)), cast(Shape, tuple(strides))
    if isinstance(dtype, list) or (sizes and min(sizes) < 0):
        raise Missing("bad_shapes")
    return Tensor(sizes, dtype, steps if len(steps) == len(sizes) else None)


def _tensor_list(
    shapes: list[int | list[int]],
    dtype: str | list[str],
    strides: list[int | list[int]],
    list_dtype: str,
) -> list[Tensor]:
    kinds = dtype if isinstance(dtype, list) else [list_dtype] * len(shapes)
    steps = strides if len(strides) == len(shapes) else [[]] * len(shapes)
    return [
        _tensor(_sequence(shape), kind, _sequence(step))
        for shape, kind, step in zip(shapes, kinds, steps, strict=False)
    ]


def _sequence(value: int | list[int]) -> list[int]:
    return value if isinstance(value, list) else []


def _cost(entry: Entry, work: Work, assumed: tuple[str, ...]) -> Cost:
    notes = list(work.notes)
    figures = work.flops, _total(work.reads, notes), _total(work.writes, notes)
    flops, read, written = figures
    if max(flops or 0, read or 0, written or 0) > _INT64_MAX:
        raise Missing("too_large")
    if min(flops or 0, read or 0, written or 0) < 0:
        raise Missing("bad_arguments")
    if read or written:
        notes += assumed
    outputs = (work.writes or None) if work.outputs is None else work.outputs
    return Cost(
        flops,
        read,
        written,
        None if outputs is None else _encode([out.shape for out in outputs]).decode(),
        work.family or entry.family,
        None if figures == (None, None, None) else "formula",
        "; ".join(dict.fromkeys(notes)) or None,
    )


def _total(tensors: Iterable[Tensor] | None, notes: list[str]) -> int | None:
    """Bytes of tensors; None, with a note, where one of them is of unknown size."""
    if tensors is None:
        return None
    total = 0
    for tensor in tensors:
        size = tensor.nbytes
        if size is None and tensor.numel:
            notes.append(_NO_SIZE.get(tensor.dtype, "unknown_dtype"))
            return None
        total += size or 0
    return total


_NO_SIZE = {"": "no_dtypes", LIST: "list_dtype_not_recorded"}
