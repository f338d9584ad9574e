"""Pooling, resampling and their backwards.

FLOPs: one comparison or addition for each element of each window; resampling counts the taps of
its kernel twice (linear 2 a dimension, cubic 4), nearest none.
"""

from __future__ import annotations

import math

from neuron_explorer.collectors.costs.arguments import Call, Shape, Tensor
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula


def _spread(sizes: list[int] | None, rank: int, default: list[int]) -> list[int]:
    found = sizes or default
    return found * rank if len(found) == 1 else found


def _rank(call: Call) -> int:
    return next((int(digit) for digit in "123" if f"{digit}d" in call.name), 2)


def _windows(call: Call, source: Tensor, *, dilated: bool) -> tuple[Shape, int]:
    """Output shape and window size of pool(self, kernel, stride, padding, [dilation,] ceil)."""
    rank = _rank(call)
    kernel = _spread(call.ints(1), rank, [1])
    stride = _spread(call.ints(2), rank, kernel)
    padding = _spread(call.ints(3), rank, [0])
    dilation = _spread(call.ints(4) if dilated else None, rank, [1])
    ceil = call.text(5 if dilated else 4) == "True"
    sizes = []
    for place, size in enumerate(source.shape[-rank:]):
        k, s, p, d = kernel[place], stride[place], padding[place], dilation[place]
        room = size + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil else room // s) + 1
        # a window may start in the padding on the left, never in that on the right
        sizes.append(count - 1 if ceil and (count - 1) * s >= size + p else count)
    return source.shape[:-rank] + tuple(sizes), math.prod(kernel)


_MAX = "max_pool1d max_pool2d max_pool3d mkldnn_max_pool2d mkldnn_max_pool3d"


@formula(
    "pooling", f"{_MAX} max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices"
)
def max_pool(call: Call) -> Work:
    """The largest of each window, with its place where indices are asked for."""
    source = call.tensor(0)
    shape, window = _windows(call, source, dilated=True)
    output = Tensor(shape, source.dtype)
    writes = [output, output.like("long int")] if "indices" in call.name else [output]
    return Work(output.numel * window, [source], writes)


@formula("pooling", "avg_pool1d avg_pool2d avg_pool3d")
def avg_pool(call: Call) -> Work:
    """The mean of each window."""
    source = call.tensor(0)
    shape, window = _windows(call, source, dilated=False)
    output = Tensor(shape, source.dtype)
    return Work(output.numel * window, [source], [output])


@formula(
    "pooling",
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d "
    "_adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
    "mkldnn_adaptive_avg_pool2d",
)
def adaptive_pool(call: Call) -> Work:
    """Windows such that a given size comes out: every input element counts once."""
    source, rank = call.tensor(0), _rank(call)
    sizes = _spread(call.ints(1), rank, [1])
    output = Tensor(source.shape[:-rank] + tuple(sizes), source.dtype)
    writes = [output, output.like("long int")] if "max" in call.name else [output]
    return Work(source.numel, [source], writes)


@formula(
    "pooling",
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward",
)
def max_pool_backward(call: Call) -> Work:
    """Gradients go where the indices say; of the input only the shape matters."""
    gradient, source = call.tensor(0), call.tensor(1)
    indices = [tensor for tensor in call.tensors(start=2) if "long" in tensor.dtype]
    if not indices:
        indices = call.tensors(start=2)[-1:]
    return Work(gradient.numel, [gradient, *indices], [source.like()])


@formula(
    "pooling",
    "avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward "
    "_adaptive_avg_pool3d_backward mkldnn_adaptive_avg_pool2d_backward",
)
def avg_pool_backward(call: Call) -> Work:
    """Gradients spread evenly; of the input only the shape matters."""
    gradient, source = call.tensor(0), call.tensor(1)
    return Work(source.numel, [gradient], [source.like()])


_TAPS = {"nearest": 0, "linear1d": 2, "bilinear": 4, "bicubic": 16, "trilinear": 8}
_UPSAMPLE = (
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d "
    "upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"
)


def _taps(name: str) -> int:
    return next((taps for word, taps in _TAPS.items() if word in name), 1)


@formula("pooling", _UPSAMPLE)
def upsample(call: Call) -> Work:
    """A given output size, or factors of the input's."""
    source, rank = call.tensor(0), _rank(call)
    lead, spatial = source.shape[:-rank], source.shape[-rank:]
    sizes = call.ints(1)
    if not sizes:
        factors = _factors(call, rank)
        sizes = [int(size * factor) for size, factor in zip(spatial, factors, strict=True)]
    output = Tensor(lead + tuple(sizes), source.dtype)
    return Work(2 * output.numel * _taps(call.name), [source], [output])


def _factors(call: Call, rank: int) -> list[float]:
    for place in range(2, len(call.args)):
        text = call.text(place)
        if text.startswith("["):
            numbers = [float(part) for part in text.strip("[]").split(",")]
            return numbers * rank if len(numbers) == 1 else numbers
    raise Missing("no_values")


@formula("pooling", " ".join(f"{name}_backward" for name in _UPSAMPLE.split()))
def upsample_backward(call: Call) -> Work:
    """Arguments: gradient, output size, input size, ..."""
    gradient = call.tensor(0)
    sizes = call.ints(2)
    if not sizes:
        raise Missing("size_not_recorded")
    output = Tensor(tuple(sizes), gradient.dtype)
    return Work(2 * gradient.numel * max(_taps(call.name), 1), [gradient], [output])


@formula("pooling", "grid_sampler grid_sampler_2d grid_sampler_3d cudnn_grid_sampler")
def grid_sampler(call: Call) -> Work:
    """Four (or eight) neighbours of each grid point."""
    source, grid = call.tensor(0), call.tensor(1)
    rank = len(source.shape) - 2
    output = Tensor(source.shape[:2] + grid.shape[1:-1], source.dtype)
    return Work(2 * output.numel * 2**rank, [source, grid], [output])


@formula("pooling", "grid_sampler_2d_backward grid_sampler_3d_backward")
def grid_sampler_backward(call: Call) -> Work:
    """Gradients of input and grid."""
    gradient, source, grid = (call.tensor(i) for i in range(3))
    flops = 4 * gradient.numel * 2 ** (len(source.shape) - 2)
    return Work(flops, [gradient, source, grid], [source.like(), grid.like()])


@formula("copy", "pixel_shuffle pixel_unshuffle")
def pixel_shuffle(call: Call) -> Work:
    """Channels become positions, or the other way round."""
    source, factor = call.tensor(0), call.integer(1, 1)
    *lead, channels, height, width = source.shape
    if "un" in call.name:
        shape = (*lead, channels * factor**2, height // factor, width // factor)
    else:
        shape = (*lead, channels // factor**2, height * factor, width * factor)
    return Work(0, [source], [Tensor(shape, source.dtype)])
