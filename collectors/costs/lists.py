"""The dtype of tensors in a list, which torch does not record, from the ops around the call."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from neuron_explorer.collectors.costs.dtypes import element_bytes

_decode = msgspec.json.Decoder(list[object]).decode


def list_dtype(
    output_shapes: str | None, neighbours: Iterable[tuple[str | None, str | None]]
) -> str | None:
    """The element type that a neighbouring op recorded for a tensor of the same shape.

    For an op whose cost says `list_dtype_not_recorded`; give the result to `op_cost`.

    Args:
        output_shapes: Of that cost: what a `cat` made, or the tensors a foreach op rewrote.
        neighbours: `(input_shapes, input_dtypes)` of other ops on the thread, likeliest first:
            those that follow a `cat` take what it made.
    """
    shapes = _read(output_shapes)
    wanted = shapes[0] if shapes else None
    if not wanted:
        return None
    for shape_text, dtype_text in neighbours:
        for shape, dtype in zip(_read(shape_text), _read(dtype_text), strict=False):
            if shape == wanted and isinstance(dtype, str) and element_bytes(dtype):
                return dtype
    return None


def _read(text: str | None) -> list[object]:
    try:
        return _decode(text) if text else []
    except (msgspec.DecodeError, RecursionError):
        return []
