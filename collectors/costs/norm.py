"""Normalisation: layer, RMS, group, instance and batch norm, forward and backward.

FLOPs an element: 8 forward with a mean (mean 1, variance 3, normalise 2, affine 2), 4 for RMS norm
(square, sum, two products), and twice the forward in the backward. Saved statistics are written
too. In training batch norm also rewrites its running statistics.
"""

from __future__ import annotations

from neuron_explorer.collectors.costs.arguments import Call, Shape, Tensor
from neuron_explorer.collectors.costs.dtypes import accumulator
from neuron_explorer.collectors.costs.registry import Work, formula

MEAN_NORM = 8
RMS_NORM = 4


def _rows(call: Call, source: Tensor, weight: Tensor | None) -> tuple[Shape, tuple[str, ...]]:
    """Shape of one statistic for each normalised row."""
    sizes = call.ints(1) if call.has_values else None
    known = sizes or (weight.shape if weight is not None else None)
    dims = 1 if known is None else len(known)
    rank = len(source.shape)
    notes = () if known is not None else ("last_dim_assumed",)
    return source.shape[: rank - dims] + (1,) * dims, notes


@formula("norm", "native_layer_norm")
def native_layer_norm(call: Call) -> Work:
    """Layer norm; also writes mean and inverse deviation of each row."""
    source = call.tensor(0)
    rows, notes = _rows(call, source, call.optional(2))
    statistic = Tensor(rows, accumulator(source.dtype))
    writes = [source.like(), statistic, statistic]
    return Work(source.numel * MEAN_NORM, call.tensors(stop=4), writes, notes=notes)


@formula("norm", "layer_norm")
def layer_norm(call: Call) -> Work:
    """Layer norm as called by a user: one result."""
    source = call.tensor(0)
    return Work(source.numel * MEAN_NORM, call.tensors(stop=4), [source.like()])


@formula("norm", "rms_norm")
def rms_norm(call: Call) -> Work:
    """RMS norm: input, shape, weight."""
    source = call.tensor(0)
    return Work(source.numel * RMS_NORM, call.tensors(stop=3), [source.like()])


@formula("norm", "_fused_rms_norm")
def fused_rms_norm(call: Call) -> Work:
    """RMS norm; also writes the inverse root of each row."""
    source = call.tensor(0)
    rows, notes = _rows(call, source, call.optional(2))
    writes = [source.like(), Tensor(rows, accumulator(source.dtype))]
    return Work(source.numel * RMS_NORM, call.tensors(stop=3), writes, notes=notes)


def _wanted(call: Call, place: int, gradients: list[Tensor]) -> list[Tensor]:
    words = call.text(place).strip("[]").replace(" ", "").split(",")
    if len(words) != len(gradients):
        return gradients
    return [t for word, t in zip(words, gradients, strict=True) if word in ("True", "1")]


@formula("norm", "native_layer_norm_backward")
def layer_norm_backward(call: Call) -> Work:
    """Gradients of input, weight and bias: grad, input, shape, mean, rstd, weight, bias, mask."""
    source, weight, bias = call.tensor(1), call.optional(5), call.optional(6)
    affine = [tensor.like() for tensor in (weight, bias) if tensor is not None]
    gradients = [source.like(), *affine]
    writes = _wanted(call, 7, gradients) if len(gradients) == 3 else gradients
    return Work(2 * source.numel * MEAN_NORM, call.tensors(stop=6), writes)


@formula("norm", "_fused_rms_norm_backward")
def rms_norm_backward(call: Call) -> Work:
    """Gradients of input and weight: grad, input, shape, rstd, weight, mask."""
    source, weight = call.tensor(1), call.optional(4)
    gradients = [source.like(), *([] if weight is None else [weight.like()])]
    return Work(2 * source.numel * RMS_NORM, call.tensors(stop=5), _wanted(call, 5, gradients))


@formula("norm", "native_group_norm")
def native_group_norm(call: Call) -> Work:
    """Group norm; also writes mean and inverse deviation of each group."""
    source = call.tensor(0)
    reads = call.tensors(stop=3)
    if not call.has_values:
        notes = ("statistics_not_counted",)
        return Work(source.numel * MEAN_NORM, reads, [source.like()], notes=notes)
    statistic = Tensor((source.shape[0], call.integer(6, 1)), source.dtype)
    writes = [source.like(), statistic, statistic]
    return Work(source.numel * MEAN_NORM, reads, writes)


@formula("norm", "group_norm")
def group_norm(call: Call) -> Work:
    """Group norm as called by a user: input, groups, weight, bias."""
    source = call.tensor(0)
    return Work(source.numel * MEAN_NORM, call.tensors(stop=4), [source.like()])


@formula("norm", "native_group_norm_backward")
def group_norm_backward(call: Call) -> Work:
    """Gradients of input, weight and bias: grad, input, mean, rstd, weight, ..."""
    source, weight = call.tensor(1), call.optional(4)
    affine = [] if weight is None else [weight.like(), weight.like()]
    gradients = [source.like(), *affine]
    writes = _wanted(call, 9, gradients) if affine else gradients
    return Work(2 * source.numel * MEAN_NORM, call.tensors(stop=5), writes)


@formula("norm", "batch_norm _batch_norm_impl_index instance_norm")
def batch_norm(call: Call) -> Work:
    """Batch norm as called by a user; running statistics are rewritten in training."""
    source, running = call.tensor(0), call.tensors(start=3, stop=5)
    training = call.has_values and call.flag(5)
    writes = [source.like(), *(running if training else [])]
    reads = call.tensors(stop=5)
    return Work(source.numel * MEAN_NORM, reads, writes, outputs=[source.like()])


@formula(
    "norm",
    "native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit "
    "_batch_norm_with_update",
)
def native_batch_norm(call: Call) -> Work:
    """Batch norm; in training it also writes the batch's statistics and the running ones."""
    source = call.tensor(0)
    running = [t for t in call.tensors(start=3, stop=5) if len(t.shape) == 1]
    update = "with_update" in call.name
    training = update or (call.has_values and call.flag(5))
    reads = call.tensors(stop=5)
    if not training:
        notes = () if call.has_values else ("statistics_not_counted",)
        return Work(source.numel * MEAN_NORM, reads, [source.like()], notes=notes)
    saved = Tensor(source.shape[1:2], accumulator(source.dtype))
    writes = [source.like(), saved, saved, *running]
    outputs = [source.like(), saved, saved]
    return Work(source.numel * MEAN_NORM, reads, writes, outputs=outputs)


@formula("norm", "native_batch_norm_backward")
def batch_norm_backward(call: Call) -> Work:
    """Gradients of input, weight and bias: grad, input, weight, running, saved, ..., mask."""
    source, weight = call.tensor(1), call.optional(2)
    training = not call.has_values or call.text(7) == "True"
    statistics = call.tensors(start=5, stop=7) if training else call.tensors(start=3, stop=5)
    reads = [*call.tensors(stop=3), *statistics]
    per_channel = Tensor(source.shape[1:2], source.dtype if weight is None else weight.dtype)
    writes = _wanted(call, 9, [source.like(), per_channel, per_channel])
    return Work(2 * source.numel * MEAN_NORM, reads, writes)


@formula("norm", "cudnn_batch_norm_backward miopen_batch_norm_backward batch_norm_backward")
def vendor_batch_norm_backward(call: Call) -> Work:
    """Gradients of input, weight and bias: input, grad, weight, running, saved, ..."""
    source, weight = call.tensor(0), call.tensor(2)
    reads = [*call.tensors(stop=3), *call.tensors(start=5, stop=7)]
    writes = [source.like(), weight.like(), weight.like()]
    return Work(2 * source.numel * MEAN_NORM, reads, writes)


@formula("norm", "batch_norm_stats batch_norm_backward_reduce")
def batch_norm_stats(call: Call) -> Work:
    """Per-channel sums of a synchronised batch norm."""
    source = call.tensor(0)
    channel = Tensor(source.shape[1:2], accumulator(source.dtype))
    big = [t for t in call.tensors() if len(t.shape) == len(source.shape)]
    return Work(source.numel * MEAN_NORM // 2, big, [channel, channel])


@formula("norm", "batch_norm_elemt batch_norm_backward_elemt")
def batch_norm_elemt(call: Call) -> Work:
    """The elementwise half of a synchronised batch norm."""
    source = call.tensor(0)
    return Work(source.numel * MEAN_NORM // 2, call.tensors(), [source.like()])


@formula("norm", "renorm normalize _weight_norm")
def normalize(call: Call) -> Work:
    """Rows scaled by their norm."""
    source = call.tensor(0)
    return Work(source.numel * RMS_NORM, call.tensors(stop=2), [source.like()])


@formula("norm", "_weight_norm_interface")
def weight_norm(call: Call) -> Work:
    """Weight from direction and magnitude; also writes the norms."""
    direction, magnitude = call.tensor(0), call.tensor(1)
    writes = [direction.like(), magnitude.like()]
    return Work(direction.numel * RMS_NORM, [direction, magnitude], writes)
