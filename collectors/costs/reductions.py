"""Reductions and softmax.

FLOPs an input element: 1 for a sum or a maximum, 2 for a norm, 4 for a variance (mean 1,
difference, square, sum), 6 for a log-sum-exp; softmax 8 (maximum 1, difference 1, exp 4, sum 1,
division 1), its backward 4 (product, sum, difference, product).
"""

from __future__ import annotations

from typing import TypeAlias

from neuron_explorer.collectors.costs import dtypes
from neuron_explorer.collectors.costs.arguments import Call, Shape, Tensor, broadcast
from neuron_explorer.collectors.costs.elementwise import elementwise
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula

SOFTMAX = 8
SOFTMAX_BACKWARD = 4

Places: TypeAlias = tuple[int, int] | None
"""Positions of dim and keepdim; None = everything is reduced."""


def reduced(source: Tensor, dims: list[int] | None, *, keep: bool) -> Shape:
    """The shape left when dimensions are reduced; None or [] = all of them."""
    rank = len(source.shape)
    gone = {dim % max(rank, 1) for dim in dims} if dims else set(range(rank))
    if keep:
        return tuple(1 if i in gone else n for i, n in enumerate(source.shape))
    return tuple(n for i, n in enumerate(source.shape) if i not in gone)


def _shape(call: Call, places: Places) -> Shape:
    if places is None:
        return ()
    dim, keep = places
    target = call.tensors(start=1)
    if target:
        return target[0].shape
    return reduced(call.tensor(0), call.ints(dim), keep=call.text(keep) == "True")


def reduce(call: Call, places: Places, flops: int, results: list[str]) -> Work:
    """One pass over the input; `results` are the dtypes of what comes out."""
    source = call.tensor(0)
    try:
        shape = _shape(call, places)
    except Missing as missing:
        return Work(source.numel * flops, [source], None, notes=(missing.code,))
    return Work(source.numel * flops, [source], [Tensor(shape, dtype) for dtype in results])


def _summed(call: Call, place: int) -> str:
    dtype = call.tensor(0).dtype
    natural = "long int" if dtype and dtypes.kind(dtype) < dtypes.FLOAT else dtype
    return call.dtype(place, natural)


@formula("reduction", "sum nansum prod mean nanmean")
def total(call: Call) -> Work:
    """Arguments: none or dtype; or dim, keepdim, dtype."""
    if len(call.args) <= 2:
        return reduce(call, None, 1, [_summed(call, 1)])
    return reduce(call, (1, 2), 1, [_summed(call, 3)])


@formula("reduction", "amax amin argmax argmin")
def extreme(call: Call) -> Work:
    """Arguments: dim, keepdim."""
    dtype = "long int" if "arg" in call.name else call.tensor(0).dtype
    return reduce(call, (1, 2), 1, [dtype])


@formula("reduction", "max min")
def maximum(call: Call) -> Work:
    """Of one tensor, of two elementwise, or along a dimension with the indices."""
    if call.optional(1) is not None and len(call.args) == 2:
        return elementwise(call, 2, 1)
    return _with_indices(call)


@formula("reduction", "median nanmedian mode")
def median(call: Call) -> Work:
    """Of all, or along a dimension with the indices."""
    return _with_indices(call)


def _with_indices(call: Call) -> Work:
    dtype = call.tensor(0).dtype
    if len(call.args) == 1:
        return reduce(call, None, 1, [dtype])
    return reduce(call, (1, 2), 1, [dtype, "long int"])


@formula("reduction", "aminmax _aminmax")
def aminmax(call: Call) -> Work:
    """Arguments: dim, keepdim."""
    dtype = call.tensor(0).dtype
    return reduce(call, (1, 2) if call.text(1) else None, 2, [dtype, dtype])


@formula("reduction", "all any")
def truth(call: Call) -> Work:
    """Of all, or along dimensions."""
    return reduce(call, None if len(call.args) == 1 else (1, 2), 1, ["bool"])


@formula("reduction", "_is_all_true _is_any_true count_nonzero")
def whole(call: Call) -> Work:
    """Everything into one element."""
    return reduce(call, None, 1, ["long int" if "count" in call.name else "bool"])


@formula("reduction", "var std var_mean std_mean")
def variance(call: Call) -> Work:
    """Arguments: unbiased; or dim, correction, keepdim."""
    dtype = call.tensor(0).dtype
    results = [dtype, dtype] if "mean" in call.name else [dtype]
    return reduce(call, None if len(call.args) <= 2 else (1, 3), 4, results)


@formula("reduction", "norm linalg_vector_norm linalg_norm frobenius_norm nuclear_norm")
def norm(call: Call) -> Work:
    """Arguments: p; or p, dim, keepdim, dtype."""
    dtype = call.dtype(4, call.tensor(0).dtype)
    return reduce(call, None if len(call.args) <= 2 else (2, 3), 2, [dtype])


@formula("reduction", "logsumexp")
def logsumexp(call: Call) -> Work:
    """Arguments: dim, keepdim."""
    return reduce(call, (1, 2), 6, [call.tensor(0).dtype])


@formula("reduction", "sum_to_size _sum_to_size")
def sum_to_size(call: Call) -> Work:
    """Summed down to a shape."""
    source = call.tensor(0)
    return Work(source.numel, [source], [Tensor(tuple(call.ints(1) or ()), source.dtype)])


@formula("reduction", "dist pairwise_distance cosine_similarity")
def distance(call: Call) -> Work:
    """Two tensors into one number, or one for each row."""
    left, right = call.tensor(0), call.tensor(1)
    shape = broadcast([left.shape, right.shape])
    output = Tensor(
        () if "dist" in call.name and "pair" not in call.name else shape[:-1], left.dtype
    )
    return Work(4 * Tensor(shape, left.dtype).numel, [left, right], [output])


@formula("reduction", "trace")
def trace(call: Call) -> Work:
    """Sum of the diagonal."""
    source = call.tensor(0)
    count = min(source.shape)
    return Work(count, [Tensor((count,), source.dtype)], [Tensor((), _summed(call, 1))])


def _softmax_dtype(call: Call, source: Tensor) -> str:
    if call.name.rpartition("::")[2].startswith("_"):
        return "float" if call.text(2) == "True" else source.dtype
    return call.dtype(2, source.dtype)


@formula("softmax", "_softmax softmax _log_softmax log_softmax _safe_softmax special_softmax")
def softmax(call: Call) -> Work:
    """Arguments: dim, dtype; the inner op has half_to_float in place of dtype."""
    source = call.tensor(0)
    return Work(source.numel * SOFTMAX, [source], [source.like(_softmax_dtype(call, source))])


@formula("softmax", "_masked_softmax")
def masked_softmax(call: Call) -> Work:
    """Softmax over what a mask leaves."""
    source = call.tensor(0)
    return Work(source.numel * SOFTMAX, call.tensors(stop=2), [source.like()])


@formula("softmax", "_softmax_backward_data _log_softmax_backward_data _masked_softmax_backward")
def softmax_backward(call: Call) -> Work:
    """Gradient from the gradient and the result of the forward."""
    gradient = call.tensor(0)
    dtype = call.dtype(3, gradient.dtype)
    return Work(gradient.numel * SOFTMAX_BACKWARD, call.tensors(stop=2), [gradient.like(dtype)])


@formula("reduction", "value_selecting_reduction_backward")
def selecting_backward(call: Call) -> Work:
    """Zeros, and the gradient where the extreme was."""
    gradient, indices = call.tensor(0), call.tensor(2)
    sizes = call.ints(3)
    if not sizes:
        raise Missing("size_not_recorded")
    return Work(0, [gradient, indices], [Tensor(tuple(sizes), gradient.dtype)])
