"""Convolutions: each output position meets the whole filter once, two FLOPs a product.

As `torch.utils.flop_counter` counts: 2 * batch * positions * weight elements, where positions are
the output's, or for a transposed convolution the input's. The weight's channel dimension is
already divided by the groups. A bias adds nothing. The backward is one such count for the
gradient of the input and one for that of the weight; that counter forgets the groups in the
latter, here they count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from neuron_explorer.collectors.costs.arguments import Call, Shape, Tensor
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Formula, Work, add, formula


class Layout(NamedTuple):
    """At which positions a variant keeps its options; None = it has no such option."""

    stride: int = 3
    padding: int = 4
    dilation: int = 5
    transposed: int | None = None
    output_padding: int | None = None
    groups: int = 6
    bias: int | None = 2


_VENDOR = Layout(stride=4, padding=3, dilation=5)
_LAYOUTS: dict[str, Layout] = {
    "conv1d conv2d conv3d": Layout(),
    "convolution _convolution convolution_overrideable": Layout(
        transposed=6, output_padding=7, groups=8
    ),
    "miopen_convolution miopen_depthwise_convolution mkldnn_convolution": _VENDOR,
    "cudnn_convolution": Layout(stride=3, padding=2, dilation=4, groups=5, bias=None),
    "cudnn_convolution_relu": Layout(),
    "cudnn_convolution_add_relu": Layout(stride=5, padding=6, dilation=7, groups=8, bias=4),
    "_slow_conv2d_forward thnn_conv2d slow_conv3d slow_conv3d_forward": Layout(
        stride=4, padding=5, dilation=99, groups=99, bias=3
    ),
    "_conv_depthwise2d conv_depthwise3d slow_conv_dilated2d slow_conv_dilated3d": Layout(
        stride=4, padding=5, dilation=6, groups=99, bias=3
    ),
}
_TRANSPOSED: dict[str, Layout] = {
    "conv_transpose1d conv_transpose2d conv_transpose3d": Layout(
        output_padding=5, groups=6, dilation=7
    ),
    "miopen_convolution_transpose": Layout(padding=3, output_padding=4, stride=5, dilation=6),
    "cudnn_convolution_transpose": Layout(
        padding=2, output_padding=3, stride=4, dilation=5, groups=6, bias=None
    ),
    "slow_conv_transpose2d slow_conv_transpose3d": Layout(
        stride=4, padding=5, output_padding=6, dilation=7, groups=99, bias=3
    ),
}


def _option(call: Call, place: int | None, rank: int, default: int) -> list[int]:
    if place is None or place >= len(call.args):
        return [default] * rank
    found = call.ints(place)
    if not found:  # `padding="same"`: torch records no text
        raise Missing("no_values")
    return found * rank if len(found) == 1 else found


def output_positions(
    source: Sequence[int], kernel: Sequence[int], options: Sequence[Sequence[int]]
) -> Shape:
    """Output sizes; `options` are stride, padding and dilation, each one number a dimension."""
    stride, padding, dilation = options
    return tuple(
        max(0, (n + 2 * p - d * (k - 1) - 1) // s + 1)
        for n, k, s, p, d in zip(source, kernel, stride, padding, dilation, strict=True)
    )


def _forward_shape(call: Call, layout: Layout, *, transposed: bool) -> Shape:
    source, weight = call.tensor(0), call.tensor(1)
    kernel = weight.shape[2:]
    spatial = source.shape[-len(kernel) :]
    lead = source.shape[: -len(kernel) - 1]
    places = (layout.stride, 1), (layout.padding, 0), (layout.dilation, 1)
    stride, padding, dilation = (_option(call, p, len(kernel), d) for p, d in places)
    if not transposed:
        sizes = output_positions(spatial, kernel, (stride, padding, dilation))
        return (*lead, weight.shape[0], *sizes)
    extra = _option(call, layout.output_padding, len(kernel), 0)
    groups = _option(call, layout.groups, 1, 1)[0]
    sizes = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(spatial, stride, padding, dilation, kernel, extra, strict=True)
    )
    return (*lead, weight.shape[1] * groups, *sizes)


def _flops(batch: int, positions: Sequence[int], weight: Tensor) -> int:
    return 2 * batch * math.prod(positions) * weight.numel


def forward(call: Call, layout: Layout, *, transposed: bool) -> Work:
    """A convolution whose options stand at the places of `layout`."""
    source, weight = call.tensor(0), call.tensor(1)
    if layout.transposed is not None:
        transposed = call.flag(layout.transposed)
    rank = len(weight.shape) - 2
    output = Tensor(_forward_shape(call, layout, transposed=transposed), source.dtype)
    batch = source.shape[0] if len(source.shape) == rank + 2 else 1
    positions = source.shape[-rank:] if transposed else output.shape[-rank:]
    bias = None if layout.bias is None else call.optional(layout.bias)
    reads = [source, weight, *([] if bias is None else [bias])]
    return Work(_flops(batch, positions, weight), reads, [output])


def _bind(layout: Layout, *, transposed: bool) -> Formula:
    def bound(call: Call) -> Work:
        return forward(call, layout, transposed=transposed)

    return bound


for _transposed, _layouts in ((False, _LAYOUTS), (True, _TRANSPOSED)):
    for _names, _layout in _layouts.items():
        for _name in _names.split():
            add(f"aten::{_name}", "convolution", _bind(_layout, transposed=_transposed))


class Backward(NamedTuple):
    """One convolution's tensors and which gradients were asked for."""

    gradient: Tensor
    source: Tensor
    weight: Tensor
    mask: list[bool]


def backward(parts: Backward, *, transposed: bool, notes: tuple[str, ...] = ()) -> Work:
    """Gradients of input, weight and bias, as far as they were asked for."""
    gradient, source, weight, mask = parts
    batch = source.shape[0]
    smaller = source if transposed else gradient
    one = _flops(batch, smaller.shape[2:], weight)
    bias = Tensor(gradient.shape[1:2], weight.dtype)
    wanted = [(mask[0], source.like()), (mask[1], weight.like()), (mask[2], bias)]
    reads = [gradient]
    reads += [weight] if mask[0] else []
    reads += [source] if mask[1] else []
    writes = [tensor for asked, tensor in wanted if asked]
    return Work(one * (mask[0] + mask[1]), reads, writes, notes=notes)


def _mask(call: Call, place: int, *, bias: bool) -> tuple[list[bool], tuple[str, ...]]:
    words = call.text(place).strip("[]").replace(" ", "").split(",")
    if len(words) < 2:
        return [True, True, bias], ("mask_not_recorded",)
    return [word in ("True", "1") for word in (*words, "False")][:3], ()


@formula("convolution", "convolution_backward convolution_backward_overrideable")
def convolution_backward(call: Call) -> Work:
    """Backward of any convolution (torch 1.11 and later)."""
    transposed = call.has_values and call.flag(7)
    mask, notes = _mask(call, 10, bias=bool(call.ints(3)) if call.has_values else False)
    parts = Backward(call.tensor(0), call.tensor(1), call.tensor(2), mask)
    return backward(parts, transposed=transposed, notes=notes)


@formula("convolution", "_convolution_double_backward")
def double_backward(call: Call) -> Work:
    """Calls convolutions, which carry the cost."""
    raise Missing("flops_unknown" if call.tensors() else "no_shapes")


@formula(
    "convolution",
    "cudnn_convolution_backward miopen_convolution_backward mkldnn_convolution_backward "
    "thnn_conv2d_backward _slow_conv2d_backward miopen_depthwise_convolution_backward "
    "cudnn_convolution_transpose_backward miopen_convolution_transpose_backward",
)
def vendor_backward(call: Call) -> Work:
    """Backward of a vendor's convolution: input, gradient, weight."""
    slow = "conv2d" in call.name
    first, second = (1, 0) if slow else (0, 1)
    mask, notes = _mask(call, len(call.args) - 1, bias=False)
    parts = Backward(call.tensor(second), call.tensor(first), call.tensor(2), mask)
    return backward(parts, transposed="transpose" in call.name, notes=notes)


@formula(
    "convolution",
    "cudnn_convolution_backward_input miopen_convolution_backward_input "
    "cudnn_convolution_backward_weight miopen_convolution_backward_weight "
    "mkldnn_convolution_backward_input mkldnn_convolution_backward_weights "
    "cudnn_convolution_transpose_backward_input cudnn_convolution_transpose_backward_weight",
)
def half_backward(call: Call) -> Work:
    """One of the two gradients; the size of its result is an argument.

    The gradient of the input needs no more than the other two shapes for its FLOPs, but that of
    the weight does: without the recorded size the enclosing op has the cost of both.
    """
    sizes = call.ints(0)
    if not sizes:
        raise Missing("size_not_recorded")
    one, other = call.tensors(start=1)[:2]
    result = Tensor(tuple(sizes), other.dtype)
    weight = result if "weight" in call.name else other
    gradient = one
    smaller = (other if "weight" in call.name else result) if "transpose" in call.name else gradient
    flops = _flops(gradient.shape[0], smaller.shape[2:], weight)
    return Work(flops, [one, other], [result])
