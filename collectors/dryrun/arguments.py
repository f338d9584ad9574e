"""Arguments and results of ops: nested lists, tuples and dicts with tensors in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from neuron_explorer.collectors.dryrun.tensor import NAME, Cell, NeuronTensor


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors of nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def device_tensors(value: Any) -> list[NeuronTensor]:
    """Those of them that lie on the device."""
    return [tensor for tensor in tensors_in(value) if isinstance(tensor, NeuronTensor)]


def map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """The same nested structure with everything in it changed."""
    if isinstance(value, tuple | list):
        return type(value)(map_leaves(change, item) for item in value)
    if isinstance(value, dict):
        return {key: map_leaves(change, item) for key, item in value.items()}
    return change(value)


def map_tensors(change: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """The same nested structure with every tensor changed."""
    return map_leaves(lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf, value)


def on_host(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords of the same op on the host."""
    return {**kwargs, "device": torch.device("cpu")} if kwargs.get("device") else kwargs


def index_of(args: Any) -> int:
    """Number of the device that arguments lie on."""
    found = device_tensors(args)
    return found[0].device.index or 0 if found else 0


def cell_of(tensor: torch.Tensor) -> Cell:
    """Where a tensor's values are.

    Raises:
        RuntimeError: The tensor lies on another device.
    """
    if not isinstance(tensor, NeuronTensor):
        raise RuntimeError(  # noqa: TRY004 - torch raises the same for any two devices
            f"expected all tensors on {NAME}, but one is on {tensor.device}: "
            f"move it with .to('{NAME}')"
        )
    return tensor.cell


def cells_in(made: Any) -> list[Cell]:
    return [cell_of(tensor) for tensor in tensors_in(made)]


def snapshot(value: Any) -> Any:
    """Arguments whose tensors are cells: what a task reads when its turn comes.

    A tensor that only a task held on to could not be taken as a gradient.
    """
    return map_leaves(lambda leaf: leaf.cell if isinstance(leaf, NeuronTensor) else leaf, value)


def values(value: Any) -> Any:
    """A snapshot with the values of all cells."""
    return map_leaves(lambda leaf: leaf.read() if isinstance(leaf, Cell) else leaf, value)


def mutated_flags(func: Any) -> list[bool]:
    """Which arguments an op writes to."""
    return [bool(a.alias_info and a.alias_info.is_write) for a in func._schema.arguments]


def mutated(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors that an op writes to."""
    found: list[torch.Tensor] = []
    pairs = zip(func._schema.arguments, mutated_flags(func), strict=True)
    for place, (argument, written) in enumerate(pairs):
        if written:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            found += tensors_in(value)
    return found


def check_devices(func: Any, args: Any, kwargs: Any) -> None:
    """Make sure that an op's tensors all lie on the device; a number may lie on the host.

    Raises:
        RuntimeError: One lies elsewhere.
    """
    for tensor in tensors_in([args, kwargs]):
        if not isinstance(tensor, NeuronTensor) and (tensor.dim() or tensor.device.type != "cpu"):
            raise RuntimeError(
                f"{func._schema.name}: expected all tensors on {NAME}, but one of shape "
                f"{tuple(tensor.shape)} is on {tensor.device}: move it with .to('{NAME}')"
            )


_SMALL = 1 << 20


def is_small(tensor: torch.Tensor) -> bool:
    """Whether a tensor's values are known though nothing is executed: few whole numbers."""
    return not tensor.dtype.is_floating_point and tensor.numel() <= _SMALL


def fill(cells: list[Cell], results: Any, layouts: list[tuple[int, ...]] | None = None) -> None:
    """Leave results in cells, in the layouts that were promised for them."""
    for place, (cell, result) in enumerate(zip(cells, tensors_in(results), strict=True)):
        cell.value = result if layouts is None else _laid_out(result, layouts[place])


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Values in the layout that was promised for them, where a host kernel chose another."""
    pairs = zip(tensor.shape, tensor.stride(), strides, strict=True)
    if all(size <= 1 or have == promised for size, have, promised in pairs):
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)
