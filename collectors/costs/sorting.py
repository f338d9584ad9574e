"""Sorting, selection, scans and counting.

Operations: n * log2(n) comparisons for a sort, one an element for a scan, a selection or a count.
"""

from __future__ import annotations

import math

from neuron_explorer.collectors.costs.arguments import Call, Tensor, normal_dim
from neuron_explorer.collectors.costs.dtypes import FLOAT, kind
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula


def _sort_flops(source: Tensor, dim: int) -> int:
    length = source.shape[dim % max(len(source.shape), 1)] if source.shape else 1
    return source.numel * max(1, math.ceil(math.log2(max(length, 1) + 1)))


@formula("sort", "sort argsort msort")
def sort(call: Call) -> Work:
    """Values and their places. Arguments: dim, descending; or stable, dim, descending."""
    source = call.tensor(0)
    stable = call.text(1) in ("True", "False")
    dim = call.integer(2 if stable else 1, -1) if call.has_values else -1
    values, places = source.like(), source.like("long int")
    writes = [places] if "argsort" in call.name else [values, places]
    return Work(_sort_flops(source, dim), [source], writes[:1] if "msort" in call.name else writes)


@formula("sort", "topk")
def topk(call: Call) -> Work:
    """Arguments: k, dim, largest, sorted."""
    source = call.tensor(0)
    dim = normal_dim(call.integer(2, -1), len(source.shape))
    shape = (*source.shape[:dim], call.integer(1, 1), *source.shape[dim + 1 :])
    return Work(source.numel, [source], [Tensor(shape, source.dtype), Tensor(shape, "long int")])


@formula("sort", "kthvalue")
def kthvalue(call: Call) -> Work:
    """Arguments: k, dim, keepdim."""
    source = call.tensor(0)
    dim = normal_dim(call.integer(2, -1), len(source.shape))
    middle = (1,) if call.flag(3) else ()
    shape = source.shape[:dim] + middle + source.shape[dim + 1 :]
    return Work(source.numel, [source], [Tensor(shape, source.dtype), Tensor(shape, "long int")])


def _scan_dtype(call: Call, source: Tensor) -> str:
    natural = "long int" if source.dtype and kind(source.dtype) < FLOAT else source.dtype
    return call.dtype(2, natural)


@formula("scan", "cumsum cumprod logcumsumexp")
def scan(call: Call) -> Work:
    """Each element with all before it."""
    source = call.tensor(0)
    return Work(source.numel, [source], [source.like(_scan_dtype(call, source))])


@formula("scan", "_cumsum _cumprod _logcumsumexp")
def inner_scan(call: Call) -> Work:
    """The op inside a scan."""
    source = call.tensor(0)
    return Work(source.numel, [source], [source.like(_scan_dtype(call, source))])


@formula("scan", "cummax cummin")
def cummax(call: Call) -> Work:
    """The extreme so far and its place."""
    source = call.tensor(0)
    return Work(source.numel, [source], [source.like(), source.like("long int")])


@formula("scan", "diff")
def diff(call: Call) -> Work:
    """Neighbours' differences."""
    source = call.tensor(0)
    steps, dim = call.integer(1, 1), normal_dim(call.integer(2, -1), len(source.shape))
    left = max(source.shape[dim] - steps, 0)
    output = Tensor((*source.shape[:dim], left, *source.shape[dim + 1 :]), source.dtype)
    return Work(output.numel * steps, [source], [output])


@formula("reduction", "histc")
def histc(call: Call) -> Work:
    """A recorded number of bins."""
    source = call.tensor(0)
    return Work(source.numel, [source], [Tensor((call.integer(1, 100),), source.dtype)])


@formula("reduction", "bincount")
def bincount(call: Call) -> Work:
    """The number of bins is the largest value."""
    inputs = call.tensors(stop=2)
    call.tensor(0)
    return Work(inputs[0].numel, inputs, None, notes=("data_dependent",))


@formula("reduction", "quantile nanquantile")
def quantile(call: Call) -> Work:
    """Sorts inside, which carries the cost."""
    raise Missing("flops_unknown" if call.tensors() else "no_shapes")
