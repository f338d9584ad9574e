"""Loss functions, forward and backward.

FLOPs an element: 3 for squares and absolute values (difference, square, sum), 12 for the ones with
logarithms or exponentials, 1 for picking a class.
"""

from __future__ import annotations

from neuron_explorer.collectors.costs.arguments import Call, Tensor, broadcast
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Formula, Work, add, formula

NONE = 0

# position of `reduction` in the forward: losses of an input and a target of the same shape
_FORWARD = {
    ("mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss", 3): 2,
    ("kl_div poisson_nll_loss hinge_embedding_loss", 12): 2,
    ("binary_cross_entropy", 12): 3,
    ("binary_cross_entropy_with_logits", 12): 4,
}
_BACKWARD = {
    3: "mse_loss_backward l1_loss_backward smooth_l1_loss_backward huber_loss_backward "
    "soft_margin_loss_backward",
    12: "binary_cross_entropy_backward kl_div_backward binary_cross_entropy_with_logits_backward",
}


def _reduction(call: Call, place: int) -> int:
    return call.integer(place, 1)


def _pointwise(flops: int, place: int) -> Formula:
    def bound(call: Call) -> Work:
        inputs = call.tensors(stop=place)
        shape = broadcast([tensor.shape for tensor in inputs[:2]])
        full = Tensor(shape, call.tensor(0).dtype)
        output = full if _reduction(call, place) == NONE else Tensor((), full.dtype)
        return Work(full.numel * flops, inputs, [output])

    return bound


for (_names, _flops), _place in _FORWARD.items():
    for _name in _names.split():
        add(f"aten::{_name}", "loss", _pointwise(_flops, _place))


def _gradient(flops: int) -> Formula:
    def bound(call: Call) -> Work:
        source = call.tensor(1)
        inputs = [t for t in call.tensors(stop=4) if t.numel]
        return Work(source.numel * flops, inputs, [source.like()])

    return bound


for _flops, _names in _BACKWARD.items():
    for _name in _names.split():
        add(f"aten::{_name}", "loss", _gradient(_flops))


@formula("loss", "nll_loss_forward nll_loss2d_forward nll_loss nll_loss2d nll_loss_nd")
def nll_loss(call: Call) -> Work:
    """Picks the score of each target; the other scores are not read."""
    scores, target = call.tensor(0), call.tensor(1)
    weight = call.optional(2)
    picked = Tensor(target.shape, scores.dtype)
    result = Tensor(target.shape if _reduction(call, 3) == NONE else (), scores.dtype)
    total = Tensor((), scores.dtype)
    reads = [picked, target, *([] if weight is None else [weight])]
    writes = [result, total] if "forward" in call.name else [result]
    return Work(2 * target.numel, reads, writes)


@formula("loss", "nll_loss_backward nll_loss2d_backward")
def nll_loss_backward(call: Call) -> Work:
    """A zeroed gradient with one entry a target: grad, scores, target, ..."""
    gradient, scores, target = call.optional(0), call.tensor(1), call.tensor(2)
    reads = [target] if gradient is None else [gradient, target]
    return Work(target.numel, reads, [scores.like()])


@formula("loss", "cross_entropy_loss cross_entropy")
def cross_entropy(call: Call) -> Work:
    """Log-softmax and the choice of a class: the ops inside move more."""
    scores, target = call.tensor(0), call.tensor(1)
    none = _reduction(call, 3) == NONE
    shape = scores.shape[:1] + scores.shape[2:] if none else ()
    weight = call.optional(2)
    reads = [scores, target, *([] if weight is None else [weight])]
    return Work(scores.numel * 9, reads, [Tensor(shape, scores.dtype)])


@formula("loss", "ctc_loss _ctc_loss _cudnn_ctc_loss")
def ctc_loss(call: Call) -> Work:
    """Its work depends on the lengths in the data."""
    call.tensor(0)
    raise Missing("data_dependent")


@formula("loss", "cosine_embedding_loss triplet_margin_loss margin_ranking_loss")
def embedding_loss(call: Call) -> Work:
    """A few passes over two or three embeddings, which the ops inside carry."""
    inputs = call.tensors(stop=3)
    flops = 6 * call.tensor(0).numel
    return Work(flops, inputs, [Tensor((), call.tensor(0).dtype)])
