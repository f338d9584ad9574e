"""Embedding, gather, index, scatter: rows or elements are moved, never the whole table.

A gathered element counts once, and all of them together at most as much as the table holds.
Adding on the way counts one operation an element.
"""

from __future__ import annotations

import math

from neuron_explorer.collectors.costs.arguments import Call, Tensor, broadcast, normal_dim
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula

_ROWS = ("rows_read_once",)


def taken(table: Tensor, elements: int) -> Tensor:
    """`elements` elements of a table, at most all of it."""
    return Tensor((min(elements, table.stored),), table.dtype)


@formula("embedding", "embedding")
def embedding(call: Call) -> Work:
    """Rows of the table copied by index."""
    table, indices = call.tensor(0), call.tensor(1)
    output = Tensor(indices.shape + table.shape[1:], table.dtype)
    return Work(0, [indices, taken(table, output.numel)], [output], notes=_ROWS)


@formula("embedding", "embedding_dense_backward")
def embedding_backward(call: Call) -> Work:
    """A full gradient of the table: zeroed, then rows added."""
    gradient, indices = call.tensor(0), call.tensor(1)
    table = Tensor((call.integer(2, 0), gradient.shape[-1]), gradient.dtype)
    return Work(gradient.numel, [gradient, indices], [table])


@formula("embedding", "embedding_bag _embedding_bag _embedding_bag_forward_only")
def embedding_bag(call: Call) -> Work:
    """Rows of the table summed bag by bag."""
    table, indices = call.tensor(0), call.tensor(1)
    offsets = call.optional(2)
    bags = offsets.numel if offsets is not None else indices.shape[0]
    rows = indices.numel * table.shape[1]
    reads = [tensor for tensor in (indices, offsets, taken(table, rows)) if tensor is not None]
    return Work(rows, reads, [Tensor((bags, table.shape[1]), table.dtype)], notes=_ROWS)


@formula("gather", "gather take_along_dim")
def gather(call: Call) -> Work:
    """One element for each index."""
    table, dim_first = call.tensor(0), call.optional(1) is None
    index = call.tensor(2 if dim_first else 1)
    output = Tensor(index.shape, table.dtype)
    found = taken(table, index.stored)
    return Work(0, [index, found], [output], notes=_ROWS)


@formula("gather", "index_select")
def index_select(call: Call) -> Work:
    """Slices along one dimension copied by index."""
    table, index = call.tensor(0), call.tensor(2)
    dim = normal_dim(call.integer(1, 0) if call.has_values else 0, len(table.shape))
    shape = (*table.shape[:dim], index.numel, *table.shape[dim + 1 :])
    output = Tensor(shape, table.dtype)
    notes = _ROWS if call.has_values else (*_ROWS, "dim_0_assumed")
    return Work(0, [index, taken(table, output.numel)], [output], notes=notes)


def _indexed(table: Tensor, indices: list[Tensor]) -> tuple[int, ...]:
    if any(index.dtype in ("bool", "unsigned char") for index in indices):
        raise Missing("data_dependent")
    return broadcast([index.shape for index in indices]) + table.shape[len(indices) :]


@formula("gather", "index _unsafe_index")
def index(call: Call) -> Work:
    """Elements by lists of indices, which torch records no shapes of."""
    table = call.tensor(0)
    lists = call.lists()
    if not lists or not lists[0]:
        raise Missing("indices_not_recorded")
    output = Tensor(_indexed(table, lists[0]), table.dtype)
    return Work(0, [taken(table, output.numel)], [output], notes=(*_ROWS, "indices_not_counted"))


@formula("gather", "take")
def take(call: Call) -> Work:
    """Elements of the flattened tensor by index."""
    table, index_tensor = call.tensor(0), call.tensor(1)
    output = Tensor(index_tensor.shape, table.dtype)
    return Work(0, [index_tensor, taken(table, output.numel)], [output], notes=_ROWS)


@formula("scatter", "index_put _index_put_impl _unsafe_index_put")
def index_put(call: Call) -> Work:
    """As many elements written as there are values; out of place copies the target first."""
    target, values = call.tensor(0), call.tensor(2)
    if values.numel <= 1 < target.numel:
        raise Missing("indices_not_recorded")
    written = Tensor(values.shape, target.dtype)
    adds = call.has_values and call.text(3) == "True"
    reads = [values, written] if adds else [values]
    work = Work(values.numel if adds else 0, reads, [written], outputs=[target])
    return _on_target(call, target, work, ("indices_not_counted", "self_not_updated"))


def _on_target(call: Call, target: Tensor, work: Work, notes: tuple[str, ...]) -> Work:
    """The same work in place, or on a fresh copy of the target."""
    if call.inplace or call.name.endswith("_"):
        return Work(work.flops, work.reads, work.writes, outputs=[target], notes=notes)
    reads = [target, *(work.reads or ())]
    return Work(work.flops, reads, [target.like()], outputs=[target.like()], notes=notes)


@formula("scatter", "scatter scatter_add scatter_reduce")
def scatter(call: Call) -> Work:
    """One element written for each index, added to what is there where asked."""
    target, indices, source = call.tensor(0), call.tensor(2), call.optional(3)
    adds = "add" in call.name or "reduce" in call.name
    written = Tensor(indices.shape, target.dtype)
    reads = [indices]
    if source is not None and source.shape:
        reads.append(Tensor(indices.shape, source.dtype, _strides(source, indices)))
    reads += [taken(target, indices.numel)] if adds else []
    work = Work(indices.numel if adds else 0, reads, [taken(target, written.numel)])
    return _on_target(call, target, work, ("self_not_updated",))


def _strides(source: Tensor, indices: Tensor) -> tuple[int, ...] | None:
    return source.strides if len(source.shape) == len(indices.shape) else None


@formula("scatter", "index_add index_copy index_reduce")
def index_add(call: Call) -> Work:
    """Slices written (or added) along one dimension."""
    target, indices, source = call.tensor(0), call.tensor(2), call.tensor(3)
    adds = "copy" not in call.name
    written = taken(target, source.numel)
    reads = [indices, source, written] if adds else [indices, source]
    work = Work(source.numel if adds else 0, reads, [written])
    return _on_target(call, target, work, ("self_not_updated",))


@formula("scatter", "index_fill")
def index_fill(call: Call) -> Work:
    """Slices along one dimension set to a number."""
    target, indices = call.tensor(0), call.tensor(2)
    dim = normal_dim(call.integer(1, 0), len(target.shape))
    rows = indices.numel * (target.numel // max(target.shape[dim] if target.shape else 1, 1))
    work = Work(0, [indices], [taken(target, rows)])
    return _on_target(call, target, work, ("self_not_updated",))


@formula("scatter", "masked_scatter")
def masked_scatter(call: Call) -> Work:
    """Masked elements replaced: mask and target pass once, at most as many values."""
    target, mask = call.tensor(0), call.tensor(1)
    values = taken(call.tensor(2), target.numel)
    return Work(0, [target, mask, values], [target.like()], notes=("rows_read_once",))


@formula("gather", "repeat_interleave")
def repeat_interleave(call: Call) -> Work:
    """Rows repeated by a number, or by a tensor of numbers whose sum no trace records."""
    source = call.tensor(0)
    sizes = call.ints(3) if len(call.args) > 3 else None
    if not sizes:
        raise Missing("data_dependent")
    dim = normal_dim(call.integer(2, 0), len(source.shape))
    shape = (*source.shape[:dim], sizes[0], *source.shape[dim + 1 :])
    return Work(0, call.tensors(stop=2), [Tensor(shape, source.dtype)])


@formula(
    "gather", "nonzero masked_select argwhere nonzero_numpy unique unique_dim _unique _unique2"
)
def data_dependent(call: Call) -> Work:
    """The size of the result is in the data; what is read is not."""
    inputs = call.tensors(stop=2)
    call.tensor(0)
    return Work(0, inputs, None, notes=("data_dependent",))


@formula("gather", "one_hot")
def one_hot(call: Call) -> Work:
    """A row of zeros and a one for each index."""
    indices = call.tensor(0)
    classes = call.integer(1, -1)
    if classes < 0:
        raise Missing("data_dependent")
    return Work(0, [indices], [Tensor((*indices.shape, classes), "long int")])


@formula("gather", "searchsorted bucketize")
def searchsorted(call: Call) -> Work:
    """A binary search for each value: log2 of the boundaries in comparisons."""
    first, second = call.optional(0), call.optional(1)
    swap = "bucketize" in call.name
    values, edges = (first, second) if swap else (second, first)
    if values is None or edges is None:
        raise Missing("no_shapes")
    depth = max(1, math.ceil(math.log2(max(edges.shape[-1], 1) + 1)))
    return Work(values.numel * depth, [values, edges], [values.like("long int")])
