"""Larger kernels, op by op: recorded by the profiler, against counted bytes and FLOPs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

pytestmark = pytest.mark.torch


def f32(*shape: int) -> Any:
    return torch.rand(shape)


def ints(high: int, *shape: int) -> Any:
    return torch.randint(0, high, shape)


class Case(NamedTuple):
    """`read` and `written` override the count of all inputs and outputs, in bytes."""

    op: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    family: str
    read: int | None = None
    written: int | None = None


A, B, ROW = f32(16, 32), f32(16, 32), f32(32)
IMAGE, FILTER = f32(2, 8, 12, 12), f32(16, 8, 3, 3)
Q, K, V = f32(2, 4, 16, 8), f32(2, 4, 24, 8), f32(2, 4, 24, 8)
INDEX = ints(16, 5)
WIDE = ROW.expand(64, 32)

NORMS = [
    Case(
        "aten::native_layer_norm",
        lambda a, w, b: torch.native_layer_norm(a, [32], w, b, 1e-5),
        (A, ROW, f32(32)),
        "norm",
    ),
    Case(
        "aten::layer_norm", lambda a, w, b: F.layer_norm(a, [32], w, b), (A, ROW, f32(32)), "norm"
    ),
    Case(
        "aten::native_group_norm",
        lambda a, w, b: torch.native_group_norm(a, w, b, 2, 8, 144, 4, 1e-5),
        (IMAGE, f32(8), f32(8)),
        "norm",
    ),
    Case("aten::group_norm", lambda a: F.group_norm(a, 4), (IMAGE,), "norm"),
    Case("aten::rms_norm", lambda a, w: F.rms_norm(a, [32], w), (A, ROW), "norm"),
    Case(
        "aten::native_batch_norm",
        lambda a, w, b, m, v: torch.native_batch_norm(
            a, w, b, m, v, training=True, momentum=0.1, eps=1e-5
        ),
        (IMAGE, f32(8), f32(8), f32(8), f32(8)),
        "norm",
        written=IMAGE.nbytes + 4 * 8 * 4,
    ),
    Case("aten::batch_norm", F.batch_norm, (IMAGE, f32(8), f32(8)), "norm"),
]

GATHERS = [
    Case(
        "aten::embedding",
        lambda w, i: F.embedding(i, w),
        (f32(100, 8), INDEX),
        "embedding",
        read=5 * 8 * 4 + INDEX.nbytes,
    ),
    Case(
        "aten::index_select",
        lambda a, i: a.index_select(0, i),
        (A, INDEX),
        "gather",
        read=5 * 32 * 4 + INDEX.nbytes,
    ),
    Case(
        "aten::gather",
        lambda a, i: a.gather(0, i),
        (A, ints(16, 3, 32)),
        "gather",
        read=3 * 32 * (4 + 8),
    ),
    Case(
        "aten::_index_put_impl_",
        lambda a, i, v: a.index_put_((i,), v),
        (A.clone(), INDEX, f32(5, 32)),
        "scatter",
        read=5 * 32 * 4,
        written=5 * 32 * 4,
    ),
    Case(
        "aten::scatter_",
        lambda a, i, s: a.scatter_(0, i, s),
        (A.clone(), ints(16, 3, 32), f32(3, 32)),
        "scatter",
        read=3 * 32 * (8 + 4),
        written=3 * 32 * 4,
    ),
    Case(
        "aten::scatter_add_",
        lambda a, i, s: a.scatter_add_(0, i, s),
        (A.clone(), ints(16, 3, 32), f32(3, 32)),
        "scatter",
        read=3 * 32 * (8 + 4 + 4),
        written=3 * 32 * 4,
    ),
    Case(
        "aten::index_add_",
        lambda a, i, s: a.index_add_(0, i, s),
        (A.clone(), INDEX, f32(5, 32)),
        "scatter",
        read=INDEX.nbytes + 2 * 5 * 32 * 4,
        written=5 * 32 * 4,
    ),
    Case(
        "aten::index_copy_",
        lambda a, i, s: a.index_copy_(0, i, s),
        (A.clone(), INDEX, f32(5, 32)),
        "scatter",
        read=INDEX.nbytes + 5 * 32 * 4,
        written=5 * 32 * 4,
    ),
    Case("aten::one_hot", lambda i: F.one_hot(i, 16), (INDEX,), "gather"),
    Case("aten::searchsorted", torch.searchsorted, (f32(9).sort().values, f32(5)), "gather"),
    Case("aten::bucketize", torch.bucketize, (f32(5), f32(9).sort().values), "gather"),
    Case("aten::cat", lambda a, b: torch.cat([a, b], 1), (A, f32(16, 5)), "cat"),
    Case("aten::stack", lambda a, b: torch.stack([a, b], -1), (A, B), "cat"),
]

PRODUCTS = [
    Case("aten::mm", torch.mm, (A, f32(32, 8)), "matmul"),
    Case("aten::addmm", torch.addmm, (f32(8), A, f32(32, 8)), "matmul"),
    Case("aten::bmm", torch.bmm, (f32(3, 4, 5), f32(3, 5, 6)), "matmul"),
    Case("aten::baddbmm", torch.baddbmm, (f32(3, 4, 6), f32(3, 4, 5), f32(3, 5, 6)), "matmul"),
    Case("aten::linear", F.linear, (f32(2, 7, 32), f32(8, 32), f32(8)), "matmul"),
    Case("aten::matmul", torch.matmul, (f32(2, 7, 32), f32(32, 8)), "matmul"),
    Case("aten::matmul", torch.matmul, (f32(2, 3, 7, 32), f32(3, 32, 8)), "matmul"),
    Case("aten::mv", torch.mv, (A, ROW), "matmul"),
    Case("aten::dot", torch.dot, (ROW, f32(32)), "matmul"),
    Case("aten::mm", torch.mm, (WIDE, f32(32, 8)), "matmul"),
    Case("aten::convolution", F.conv2d, (IMAGE, FILTER), "convolution"),
    Case(
        "aten::conv2d",
        lambda x, w, b: F.conv2d(x, w, b, 2, 1),
        (IMAGE, FILTER, f32(16)),
        "convolution",
    ),
    Case(
        "aten::mkldnn_convolution",
        lambda x, w: F.conv2d(x, w, padding="same"),
        (IMAGE, FILTER),
        "convolution",
    ),
    Case(
        "aten::convolution",
        lambda x, w: F.conv2d(x, w, groups=4, dilation=2),
        (IMAGE, f32(16, 2, 3, 3)),
        "convolution",
    ),
    Case(
        "aten::conv1d",
        lambda x, w: F.conv1d(x, w, stride=3),
        (f32(2, 4, 30), f32(6, 4, 5)),
        "convolution",
    ),
    Case(
        "aten::conv3d",
        F.conv3d,
        (f32(1, 2, 6, 6, 6), f32(3, 2, 3, 3, 3)),
        "convolution",
    ),
    Case(
        "aten::convolution",
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1),
        (IMAGE, f32(8, 6, 3, 3)),
        "convolution",
    ),
    Case(
        "aten::conv_transpose2d",
        lambda x, w, b: F.conv_transpose2d(x, w, b, groups=2),
        (IMAGE, f32(8, 3, 3, 3), f32(6)),
        "convolution",
    ),
    Case(
        "aten::scaled_dot_product_attention", F.scaled_dot_product_attention, (Q, K, V), "attention"
    ),
]
HIDDEN = f32(1, 3, 6)
RECURRENT = [f32(24, 8), f32(24, 6), f32(24), f32(24)]
FLAGS = (True, 1, 0.0, True, False, False)
PRODUCTS += [
    Case(
        "aten::lstm",
        lambda x, h, c, *w: torch.lstm(x, (h, c), w, *FLAGS),
        (f32(5, 3, 8), HIDDEN, HIDDEN, *RECURRENT),
        "matmul",
    ),
    Case(
        "aten::gru",
        lambda x, h, *w: torch.gru(x, h, w, *FLAGS),
        (f32(5, 3, 8), HIDDEN, *(f32(18, 8), f32(18, 6), f32(18), f32(18))),
        "matmul",
    ),
]

LOSSES = [
    Case("aten::mse_loss", F.mse_loss, (A, B), "loss"),
    Case("aten::mse_loss", lambda a, b: F.mse_loss(a, b, reduction="none"), (A, B), "loss"),
    Case("aten::binary_cross_entropy", F.binary_cross_entropy, (A, B), "loss"),
    Case(
        "aten::binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, (A, B), "loss"
    ),
    Case("aten::smooth_l1_loss", F.smooth_l1_loss, (A, B), "loss"),
    Case(
        "aten::nll_loss_forward",
        lambda a, t: torch.ops.aten.nll_loss_forward(a, t, None, 1, -100),
        (A, ints(32, 16)),
        "loss",
        read=16 * (4 + 8),
    ),
    Case("aten::cross_entropy_loss", F.cross_entropy, (A, ints(32, 16)), "loss"),
]

POOLS = [
    Case(
        "aten::max_pool2d_with_indices",
        lambda a: F.max_pool2d(a, 3, 2, 1, return_indices=True),
        (IMAGE,),
        "pooling",
    ),
    Case("aten::max_pool2d", lambda a: F.max_pool2d(a, 3, 2, ceil_mode=True), (IMAGE,), "pooling"),
    Case("aten::avg_pool2d", lambda a: F.avg_pool2d(a, 2), (IMAGE,), "pooling"),
    Case(
        "aten::_adaptive_avg_pool2d",
        lambda a: F.adaptive_avg_pool2d(a, (3, 5)),
        (IMAGE,),
        "pooling",
    ),
    Case(
        "aten::adaptive_max_pool2d",
        lambda a: F.adaptive_max_pool2d(a, 4, return_indices=True),
        (IMAGE,),
        "pooling",
    ),
    Case(
        "aten::upsample_nearest2d", lambda a: F.interpolate(a, scale_factor=2), (IMAGE,), "pooling"
    ),
    Case(
        "aten::upsample_bilinear2d",
        lambda a: F.interpolate(a, (20, 30), mode="bilinear"),
        (IMAGE,),
        "pooling",
    ),
    Case(
        "aten::grid_sampler",
        lambda a, g: F.grid_sample(a, g, align_corners=False),
        (IMAGE, f32(2, 5, 6, 2)),
        "pooling",
    ),
    Case("aten::pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), (IMAGE,), "copy"),
]


def _name(case: Case) -> str:
    return case.op.removeprefix("aten::")


@pytest.mark.parametrize("case", [*NORMS, *GATHERS, *PRODUCTS, *LOSSES, *POOLS], ids=_name)
def test_cost_equals_what_was_counted(case: Case, agrees: Callable[..., None]) -> None:
    agrees(*case)
