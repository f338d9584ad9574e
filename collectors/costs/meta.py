"""Cost of an op without a formula: torch runs its meta kernel on the recorded shapes.

The only module of this package that imports torch, and only inside functions.
"""

from __future__ import annotations

from typing import Any

from neuron_explorer.collectors.costs import Cost, parse_arguments, unknown_cost
from neuron_explorer.collectors.costs.arguments import Arg, Tensor, Text
from neuron_explorer.collectors.costs.dtypes import from_enum
from neuron_explorer.collectors.costs.notes import Missing

# torch's own attribute names, where they are not Kineto's in lower case
_TORCH = {
    "long int": "int64",
    "short int": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
}


def meta_cost(
    name: str,
    shapes: str | None,
    dtypes: str | None,
    strides: str | None,
    values: str | None,
    *,
    list_dtype: str | None = None,
) -> Cost:
    """Cost by the op's meta kernel: inputs read once, outputs written once.

    Takes the arguments of `op_cost` and never raises. Views move nothing. FLOPs come from
    `torch.utils.flop_counter`, NULL where it does not know the op.
    """
    try:
        import torch
    except ImportError:
        return unknown_cost("no_torch")
    try:
        args, _ = parse_arguments((shapes, dtypes, strides, values), list_dtype)
        return _measure(torch, name, args)
    except Missing as missing:
        return unknown_cost(missing.code)
    except Exception:  # noqa: BLE001 - a meta kernel may raise anything; the note says so
        return unknown_cost("meta_failed")


def _measure(torch: Any, name: str, args: list[Arg]) -> Cost:
    overload, positional, named = _overload(torch, name, args)
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        result = overload(*positional, **named)
    outputs = _tensors(torch, result)
    moved = [] if _is_view(overload) else outputs
    inputs = [arg for arg in args if isinstance(arg, Tensor)]
    inputs += [tensor for arg in args if isinstance(arg, list) for tensor in arg]
    return Cost(
        counter.get_total_flops() or None,
        sum(tensor.nbytes or 0 for tensor in inputs) if moved else 0,
        sum(tensor.numel() * tensor.element_size() for tensor in moved),
        str([list(tensor.shape) for tensor in outputs]).replace(" ", ""),
        "other" if moved else "view",
        "meta",
        "from_meta" if counter.get_total_flops() else "from_meta; flops_unknown",
    )


def _tensors(torch: Any, result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, tuple | list):
        return [found for item in result for found in _tensors(torch, item)]
    return []


def _is_view(overload: Any) -> bool:
    returns = overload._schema.returns  # noqa: SLF001 - the only way to a schema
    marks = [item.alias_info for item in returns]
    return bool(marks) and all(mark is not None and not mark.is_write for mark in marks)


def _overload(torch: Any, name: str, args: list[Arg]) -> tuple[Any, list[Any], dict[str, Any]]:
    """The overload that the recorded arguments fit, and these as Python values."""
    namespace, _, op = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace, None), op.partition(".")[0], None)
    if packet is None or not op:
        raise Missing("no_formula")
    for overload_name in packet.overloads():
        overload = getattr(packet, overload_name)
        schema = overload._schema.arguments  # noqa: SLF001 - the only way to a schema
        if len(schema) == len(args) and all(map(_fits, schema, args)):
            pairs = list(zip(schema, args, strict=True))
            named = {a.name: _value(torch, a, arg) for a, arg in pairs if a.kwarg_only}
            return overload, [_value(torch, a, arg) for a, arg in pairs if not a.kwarg_only], named
    raise Missing("bad_arguments")


def _fits(argument: Any, arg: Arg) -> bool:
    wanted = str(argument.type)
    if isinstance(arg, Tensor):
        return wanted in ("Tensor", "Optional[Tensor]")
    if isinstance(arg, list):
        return wanted in ("List[Tensor]", "Optional[List[Tensor]]")
    return "Tensor" not in wanted or wanted.startswith("Optional")


def _value(torch: Any, argument: Any, arg: Arg) -> Any:
    if isinstance(arg, Tensor):
        return _meta(torch, arg)
    if isinstance(arg, list):
        return [_meta(torch, tensor) for tensor in arg]
    return _number(torch, argument, arg)


def _meta(torch: Any, tensor: Tensor) -> Any:
    dtype = _dtype(torch, tensor.dtype)
    if tensor.strides is None:
        return torch.empty(tensor.shape, dtype=dtype, device="meta")
    return torch.empty_strided(tensor.shape, tensor.strides, dtype=dtype, device="meta")


def _number(torch: Any, argument: Any, arg: Text) -> Any:
    if argument.name == "device":
        return "meta"
    if not arg.value or arg.value == "None":
        return argument.default_value if argument.has_default_value() else None
    if argument.name == "dtype":
        return _dtype(torch, from_enum(arg.value) or "")
    if arg.value.startswith("["):
        return [_plain(part) for part in arg.value.strip("[]").split(",") if part.strip()]
    return _plain(arg.value)


def _plain(text: str) -> bool | int | float:
    word = text.strip()
    if word in ("True", "False"):
        return word == "True"
    return int(word) if word.lstrip("-").isdigit() else float(word)


def _dtype(torch: Any, name: str) -> Any:
    plain = name.removeprefix("c10::").lower()
    found = getattr(torch, _TORCH.get(plain, plain), None)
    if not isinstance(found, torch.dtype):
        raise Missing("no_dtypes")
    return found
