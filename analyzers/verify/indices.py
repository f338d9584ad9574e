"""Which integer arguments are indices, and below what they must stay."""

from __future__ import annotations

from neuron_explorer.analyzers.verify.recorded import RecordedOp

_ROWS_OF: dict[str, tuple[int, int]] = {
    "embedding": (1, 0),
    "_embedding_bag": (1, 0),
    "index_select": (2, 0),
    "gather": (2, 0),
    "scatter": (2, 0),
    "scatter_": (2, 0),
    "scatter_add": (2, 0),
    "scatter_add_": (2, 0),
    "index_add": (2, 0),
    "index_add_": (2, 0),
    "take_along_dim": (1, 0),
    "take": (1, 0),
}
"""Place of the index, and of the tensor it points into; by the op's name."""

_DIM_PLACE = 1
_CLASSES_IN_LAST = ("nll_loss_forward", "nll_loss", "cross_entropy_loss", "nll_loss_nd")


def highest_indices(op: RecordedOp) -> dict[int, int]:
    """Bound of the values by place of the argument; every other integer is 0."""
    name = op.name.removeprefix("aten::")
    if name in _CLASSES_IN_LAST:
        return {1: _size(op, 0, 1)}
    if name == "nll_loss_backward":
        return {2: _size(op, 1, 1)}
    if name == "embedding_dense_backward":
        return {1: _number(op, 2)}
    if name not in _ROWS_OF:
        return {}
    place, into = _ROWS_OF[name]
    if name in {"embedding", "_embedding_bag"}:
        return {place: _size(op, into, 0)}
    return {place: _size(op, into, _number(op, _DIM_PLACE, default=0))}


def _size(op: RecordedOp, place: int, dim: int) -> int:
    """Size of that dimension; of a vector of logits its only one."""
    shape = op.slots[place].shape if place < len(op.slots) else ()
    if not shape or not isinstance(shape[0], int):
        return 1
    return int(shape[min(dim, len(shape) - 1)])


def _number(op: RecordedOp, place: int, default: int = 1) -> int:
    text = op.slots[place].value if place < len(op.slots) else ""
    return int(text) if text.lstrip("-").isdecimal() else default
