"""Collectives: what this rank reads from and writes to its own memory. No FLOPs.

The wire is another matter: its traffic depends on the algorithm and the group.
"""

from __future__ import annotations

from neuron_explorer.collectors.costs.arguments import Call, Tensor
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula

_LOCAL = ("local_traffic",)


def _flat(call: Call) -> list[list[Tensor]]:
    """Tensor arguments in order, a lone tensor as a list of one."""
    found = [[arg] if isinstance(arg, Tensor) else arg for arg in call.args]
    groups = [group for group in found if isinstance(group, list)]
    if not all(groups):
        raise Missing("shape_list_truncated")
    if not groups:
        raise Missing("no_shapes")
    return groups


@formula(
    "collective",
    "c10d::allreduce_ c10d::broadcast_ c10d::allreduce_coalesced_ c10d::reduce_ c10d::send "
    "c10d::recv_ c10d::recv_any_source_ vllm::all_reduce symm_mem::multimem_all_reduce_ "
    "symm_mem::one_shot_all_reduce symm_mem::two_shot_all_reduce_ _C_custom_ar::all_reduce "
    "_C_custom_ar::all_reduce_* aiter::all_reduce* _c10d_functional::all_reduce "
    "_c10d_functional::all_reduce_ _c10d_functional::broadcast _c10d_functional::broadcast_ "
    "_c10d_functional_autograd::all_reduce nccl:all_reduce nccl:broadcast nccl:reduce nccl:send "
    "nccl:recv rccl:all_reduce gloo:all_reduce gloo:broadcast xccl:all_reduce mpi:all_reduce",
    namespace="",
)
def same_size(call: Call) -> Work:
    """As much comes out as goes in."""
    tensors = _flat(call)[0]
    outputs = [tensor.like() for tensor in tensors]
    return Work(0, tensors, outputs, notes=_LOCAL)


@formula(
    "collective",
    "c10d::_allgather_base_ c10d::_reduce_scatter_base_ c10d::alltoall_base_ "
    "c10d::allgather_into_tensor_coalesced_ c10d::reduce_scatter_tensor_coalesced_ "
    "c10d::alltoall_ c10d::gather_",
    namespace="",
)
def output_first(call: Call) -> Work:
    """Output, then input."""
    groups = _flat(call)
    if len(groups) < 2:
        raise Missing("no_shapes")
    return Work(0, groups[1], [tensor.like() for tensor in groups[0]], notes=_LOCAL)


@formula("collective", "c10d::reduce_scatter_ c10d::allgather_ c10d::scatter_", namespace="")
def lists(call: Call) -> Work:
    """Lists of lists, whose shapes torch records for one side only: one side is counted twice."""
    groups = _flat(call)
    return Work(0, groups[-1], [tensor.like() for tensor in groups[0]], notes=_LOCAL)


@formula(
    "collective",
    "vllm::all_gather vllm::reduce_scatter _c10d_functional::all_gather_into_tensor "
    "_c10d_functional::reduce_scatter_tensor _c10d_functional_autograd::all_gather_into_tensor "
    "_c10d_functional_autograd::reduce_scatter_tensor symm_mem::multimem_all_gather_out",
    namespace="",
)
def scaled(call: Call) -> Work:
    """The group's size times as much, or a part of it, comes out: it is the last number."""
    source = call.tensor(0)
    numbers = [call.text(place) for place in range(1, len(call.args))]
    sizes = [int(text) for text in numbers if text.isdigit()]
    if not sizes:
        raise Missing("no_values")
    group = max(sizes[-1], 1)
    gather = "gather" in call.name
    first = source.shape[0] if source.shape else 1
    dim = int(numbers[0]) if call.name.startswith("vllm::") and numbers[0] else 0
    shape = list(source.shape) or [first]
    shape[dim] = shape[dim] * group if gather else shape[dim] // group
    return Work(0, [source], [Tensor(tuple(shape), source.dtype)], notes=_LOCAL)


@formula(
    "collective",
    "_c10d_functional::all_to_all_single _c10d_functional_autograd::all_to_all_single",
    namespace="",
)
def all_to_all(call: Call) -> Work:
    """Splits along the first dimension; the output's are recorded as numbers."""
    source = call.tensor(0)
    rows = sum(call.ints(1) or source.shape[:1])
    return Work(0, [source], [Tensor((rows, *source.shape[1:]), source.dtype)], notes=_LOCAL)


@formula("view", "_c10d_functional::wait_tensor", namespace="")
def wait(call: Call) -> Work:
    """Waits; moves nothing."""
    return Work(0, (), [], outputs=call.tensors(stop=1))


@formula("collective", "c10d::barrier nccl:barrier", namespace="")
def barrier(call: Call) -> Work:  # noqa: ARG001 - the arguments do not matter
    """Waits; moves nothing worth counting."""
    return Work(0, (), [], outputs=[])


@formula("collective", "record_param_comms nccl:* c10d::* _c10d_functional::*", namespace="")
def parameters(call: Call) -> Work:  # noqa: ARG001 - one side of the transfer is not enough
    """The record of a collective's options; the op around it has both tensors."""
    raise Missing("see_enclosing_op")
