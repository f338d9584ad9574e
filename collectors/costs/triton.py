"""Kernels that Inductor generates: `triton_poi_fused_...`, with shapes of every pointer.

Which pointers a kernel reads and which it writes is not recorded. Inductor puts outputs last, so
each tensor is taken to move once and the last one to be the result: a bound from above where a
kernel picks rows, from below where it updates in place. FLOPs are known for products only.
"""

from __future__ import annotations

from itertools import pairwise

from neuron_explorer.collectors.costs.arguments import Call, Tensor
from neuron_explorer.collectors.costs.matmul import product
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula


def _moved(call: Call) -> tuple[list[Tensor], Tensor]:
    tensors = call.tensors()
    if not tensors:
        raise Missing("no_shapes")
    return tensors[:-1], tensors[-1]


@formula("triton", "triton_*", namespace="")
def fused(call: Call) -> Work:
    """A generated pointwise, reduction or persistent kernel."""
    reads, written = _moved(call)
    notes = ("tensors_moved_once", "flops_unknown")
    return Work(None, reads, [written.like()], notes=notes)


@formula("triton", "triton_tem_*mm*", namespace="")
def template(call: Call) -> Work:
    """A generated product: two operands, maybe a bias, and the result."""
    reads, written = _moved(call)
    for left, right in pairwise(reads):
        flops = _product(left, right, written)
        if flops is not None:
            return Work(flops, reads, [written.like()], notes=("tensors_moved_once",))
    return Work(None, reads, [written.like()], notes=("tensors_moved_once", "flops_unknown"))


def _product(left: Tensor, right: Tensor, written: Tensor) -> int | None:
    try:
        flops, output = product(left, right)
    except (Missing, ValueError):
        return None
    return flops if output.numel == written.numel else None
