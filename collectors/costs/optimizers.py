"""Foreach and fused optimizer ops: lists of tensors, one launch for many of them.

torch writes no shapes for a list longer than 30 and never the dtype of a list's tensors: then
bytes are NULL and the note says which. FLOPs an element: 1 for a foreach arithmetic op, 4 for a
function; SGD 6, Adagrad 8, Adam and AdamW 14 (moments 6, root and division 4, update 4).
"""

from __future__ import annotations

from neuron_explorer.collectors.costs.arguments import Call, Tensor
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Formula, Work, add, formula

_FOREACH = {
    1: "add sub mul div maximum minimum clamp_max clamp_min abs neg sign ceil floor round trunc "
    "frac reciprocal",
    2: "addcmul addcdiv lerp",
    4: "exp expm1 log log10 log1p log2 sin cos tan sinh cosh tanh asin acos atan sqrt rsqrt erf "
    "erfc sigmoid lgamma pow",
}
_UPDATES = {"sgd": 6, "adagrad": 8, "adam": 14, "adamw": 14}


def _elements(tensors: list[Tensor]) -> int:
    return sum(tensor.numel for tensor in tensors)


def _foreach(flops: int) -> Formula:
    def bound(call: Call) -> Work:
        first = call.list_at(0)
        others = [tensor for tensors in call.lists()[1:] for tensor in tensors]
        if any(not tensors for tensors in call.lists()):
            raise Missing("shape_list_truncated")
        writes = [tensor.like() for tensor in first]
        return Work(_elements(first) * flops, [*first, *others], writes)

    return bound


for _flops, _names in _FOREACH.items():
    _bound = _foreach(_flops)
    for _name in _names.split():
        add(f"aten::_foreach_{_name}", "optimizer", _bound)


@formula("optimizer", "_foreach_zero")
def foreach_zero(call: Call) -> Work:
    """Every tensor written, none read."""
    tensors = call.list_at(0)
    return Work(0, (), [tensor.like() for tensor in tensors])


@formula("optimizer", "_foreach_copy")
def foreach_copy(call: Call) -> Work:
    """The second list copied over the first."""
    targets, sources = call.list_at(0), call.list_at(1)
    return Work(0, sources, [tensor.like() for tensor in targets])


@formula("optimizer", "_foreach_norm _foreach_max")
def foreach_norm(call: Call) -> Work:
    """One number for each tensor."""
    tensors = call.list_at(0)
    return Work(2 * _elements(tensors), tensors, [Tensor((), t.dtype) for t in tensors])


@formula("optimizer", "_fused_adam _fused_adamw _fused_sgd _fused_adagrad")
def fused_update(call: Call) -> Work:
    """Parameters and their states read and rewritten, gradients read; all lists as long."""
    name = call.name.rpartition("_fused_")[2].rstrip("_")
    lists = call.lists()
    if not lists or not lists[0]:
        raise Missing("shape_list_truncated")
    parameters = lists[0]
    full = [group for group in lists if _elements(group) == _elements(parameters)]
    reads = [tensor for group in full for tensor in group]
    kept = full[:1] + full[2:]
    writes = [tensor.like() for group in kept for tensor in group]
    flops = _elements(parameters) * _UPDATES[name]
    return Work(flops, reads, writes, outputs=[], notes=("statistics_not_counted",))


@formula("optimizer", "_amp_foreach_non_finite_check_and_unscale")
def unscale(call: Call) -> Work:
    """Gradients tested and scaled in place."""
    tensors = call.list_at(0)
    return Work(2 * _elements(tensors), tensors, [tensor.like() for tensor in tensors])


@formula("optimizer", "_amp_update_scale")
def update_scale(call: Call) -> Work:
    """The scale of a gradient scaler."""
    tensors = call.tensors(stop=3)
    return Work(4, tensors, [tensor.like() for tensor in tensors[:2]])
