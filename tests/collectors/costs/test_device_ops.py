"""Ops that only devices run: called on meta tensors, described as Kineto would record them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from neuron_explorer.collectors.costs import op_cost

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def meta(*shape: int, dtype: Any = None) -> Any:
    return torch.empty(shape, dtype=dtype or torch.bfloat16, device="meta")


def longs(*shape: int) -> Any:
    return meta(*shape, dtype=torch.int64)


def floats(*shape: int) -> Any:
    return meta(*shape, dtype=torch.float32)


class Case(NamedTuple):
    """`unread` are argument positions whose values do not matter to the op.

    `unwritten` are result positions that are scratch or saved and that no cost counts.
    """

    overload: str
    args: tuple[Any, ...]
    family: str
    unread: tuple[int, ...] = ()
    unwritten: tuple[int, ...] = ()


Q, K, V = meta(2, 4, 16, 8), meta(2, 4, 24, 8), meta(2, 4, 24, 8)
GROUPED = meta(2, 8, 16, 8), meta(2, 2, 24, 8), meta(2, 2, 24, 8)
LSE = floats(2, 4, 16)
SEED = (longs(), longs())
ROWS = meta(2, 16, 4, 8), meta(2, 24, 4, 8), meta(2, 24, 4, 8)
X, W, GRAD = meta(2, 8, 12, 12), meta(16, 8, 3, 3), meta(2, 16, 10, 10)
ONE, NIL = [1, 1], [0, 0]
CONV = (X, W, None, [2, 2], ONE, ONE)

ATTENTION = [
    Case("_scaled_dot_product_flash_attention", (Q, K, V), "attention", (), (2, 3, 6, 7, 8)),
    Case("_scaled_dot_product_flash_attention", (Q, K, V, 0.0, True), "attention", (), (6, 7, 8)),
    Case("_scaled_dot_product_efficient_attention", (Q, K, V, None, True), "attention", (), (2, 3)),
    Case(
        "_scaled_dot_product_cudnn_attention",
        (Q, K, V, None, True),
        "attention",
        (),
        (2, 3, 6, 7, 8),
    ),
    Case(
        "_scaled_dot_product_flash_attention_backward",
        (Q, Q, K, V, Q, LSE, None, None, 16, 24, 0.0, False, *SEED),
        "attention",
    ),
    Case(
        "_scaled_dot_product_efficient_attention_backward",
        (Q, Q, K, V, None, Q, LSE, *SEED, 0.0, [True, True, True, False]),
        "attention",
    ),
]

CONVOLUTIONS = [
    Case("convolution", (*CONV, False, NIL, 1), "convolution"),
    Case(
        "convolution", (X, meta(8, 6, 3, 3), meta(6), [2, 2], ONE, ONE, True, ONE, 1), "convolution"
    ),
    Case("convolution", (X, meta(16, 2, 3, 3), None, ONE, NIL, ONE, False, NIL, 4), "convolution"),
    Case(
        "convolution_backward",
        (GRAD, X, W, [16], ONE, NIL, ONE, False, NIL, 1, [True, True, True]),
        "convolution",
    ),
    Case(
        "convolution_backward",
        (GRAD, X, W, None, ONE, NIL, ONE, False, NIL, 1, [False, True, False]),
        "convolution",
        (2,),
    ),
    Case(
        "convolution_backward",
        (GRAD, X, W, None, ONE, NIL, ONE, False, NIL, 1, [True, False, False]),
        "convolution",
        (1,),
    ),
    Case(
        "convolution_backward",
        (
            meta(2, 6, 14, 14),
            X,
            meta(8, 6, 3, 3),
            None,
            ONE,
            NIL,
            ONE,
            True,
            NIL,
            1,
            [True] * 2 + [False],
        ),
        "convolution",
    ),
]

BACKWARDS = [
    Case("gelu_backward", (meta(4, 8), meta(4, 8)), "elementwise"),
    Case("silu_backward", (meta(4, 8), meta(4, 8)), "elementwise"),
    Case("sigmoid_backward", (meta(4, 8), meta(4, 8)), "elementwise"),
    Case("tanh_backward", (meta(4, 8), meta(4, 8)), "elementwise"),
    Case("threshold_backward", (meta(4, 8), meta(4, 8), 0), "elementwise"),
    Case("glu_backward", (meta(4, 4), meta(4, 8), 1), "elementwise"),
    Case("_softmax_backward_data", (meta(4, 8), meta(4, 8), 1, torch.bfloat16), "softmax"),
    Case("_log_softmax_backward_data", (meta(4, 8), meta(4, 8), 1, torch.bfloat16), "softmax"),
    Case(
        "native_layer_norm_backward",
        (meta(4, 8), meta(4, 8), [8], floats(4, 1), floats(4, 1), meta(8), meta(8), [True] * 3),
        "norm",
        (6,),
    ),
    Case(
        "native_group_norm_backward",
        (X, X, meta(2, 4), meta(2, 4), meta(8), 2, 8, 144, 4, [True] * 3),
        "norm",
    ),
    Case(
        "native_batch_norm_backward",
        (X, X, meta(8), floats(8), floats(8), floats(8), floats(8), True, 1e-5, [True] * 3),
        "norm",
        (3, 4),
    ),
    Case("embedding_dense_backward", (meta(5, 8), longs(5), 100, -1, False), "embedding"),
    Case("max_pool2d_with_indices_backward",
         (meta(2, 8, 6, 6), X, [2, 2], [2, 2], NIL, ONE, False, longs(2, 8, 6, 6)), "pooling",
         (1,)),
    Case("avg_pool2d_backward", (meta(2, 8, 6, 6), X, [2, 2], [2, 2], NIL, False, True, None),
         "pooling", (1,)),
    Case("_adaptive_avg_pool2d_backward", (meta(2, 8, 1, 1), X), "pooling", (1,)),
    Case("upsample_nearest2d_backward", (meta(2, 8, 24, 24), [24, 24], [2, 8, 12, 12]), "pooling"),
    Case("mse_loss_backward", (floats(), floats(4, 8), floats(4, 8), 1), "loss"),
    Case("nll_loss_backward", (floats(), floats(4, 8), longs(4), None, 1, -100, floats()), "loss",
         (1, 6)),
    Case("native_dropout_backward", (meta(4, 8), meta(4, 8, dtype=torch.bool), 2.0), "elementwise"),
]  # fmt: skip

PRODUCTS = [
    Case("mm", (meta(4, 8), meta(8, 6)), "matmul"),
    Case("addmm", (meta(6), meta(4, 8), meta(8, 6)), "matmul"),
    Case("_int_mm", (meta(32, 32, dtype=torch.int8), meta(32, 32, dtype=torch.int8)), "matmul"),
    Case("_grouped_mm", (meta(64, 32), meta(4, 32, 16).transpose(1, 2).contiguous().transpose(1, 2),
                         meta(4, dtype=torch.int32)), "matmul"),
    Case("_scaled_mm", (
        meta(32, 32, dtype=torch.float8_e4m3fn), meta(32, 32, dtype=torch.float8_e4m3fn).t(),
        floats(), floats(), None, None, torch.bfloat16), "matmul"),
    Case("_fused_rms_norm", (meta(4, 8), [8], meta(8), 1e-5), "norm"),
    Case("native_layer_norm", (meta(4, 8), [8], meta(8), meta(8), 1e-5), "norm"),
]  # fmt: skip


def counted(tensors: list[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@pytest.mark.parametrize(
    "case", [*ATTENTION, *CONVOLUTIONS, *BACKWARDS, *PRODUCTS], ids=lambda case: case.overload
)
def test_cost_equals_what_was_counted(case: Case, dispatched: Callable[..., Any]) -> None:
    recorded = dispatched(case.overload, case.args)
    cost = op_cost(recorded.name, *recorded.texts)
    assert (cost.family, cost.via) == (case.family, "formula"), cost
    if recorded.flops:
        assert cost.flops == recorded.flops
    kept = [
        arg for i, arg in enumerate(case.args) if i not in case.unread and hasattr(arg, "numel")
    ]
    kept = [arg for arg in kept if arg is not SEED[0] and arg is not SEED[1]]
    results = [out for i, out in enumerate(recorded.outputs) if i not in case.unwritten]
    results = [out for out in results if out.numel() and out.dtype != torch.uint64]
    assert cost.read_bytes == counted(kept)
    assert cost.write_bytes == counted(results)
    shapes = json.loads(cost.output_shapes or "[]")
    assert shapes == [list(out.shape) for out in results][: len(shapes)]
    assert shapes


def test_grouped_queries_count_every_query_head(dispatched: Callable[..., Any]) -> None:
    recorded = dispatched("_scaled_dot_product_flash_attention", GROUPED)
    cost = op_cost(recorded.name, *recorded.texts)
    assert cost.flops == recorded.flops == 2 * 2 * (2 * 8) * 16 * 24 * 8


LENGTH_FIRST = {
    "_flash_attention_forward": (*ROWS, None, None, 16, 24, 0.0, False, False),
    "_flash_attention_backward": (
        ROWS[0], *ROWS, ROWS[0], LSE, None, None, 16, 24, 0.0, False, *SEED
    ),
    "_efficient_attention_forward": (*ROWS, None, None, None, None, None, 0.0, 0, True),
}  # fmt: skip


@pytest.mark.parametrize("op", LENGTH_FIRST)
def test_inner_attention_costs_what_the_op_around_it_does(
    op: str, dispatched: Callable[..., Any], described: Callable[..., Any]
) -> None:
    """torch's counter reads these ops' (batch, length, heads, width) as heads first."""
    if "backward" in op:
        args: tuple[Any, ...] = (Q, Q, K, V, Q, LSE, None, None, 16, 24, 0.0, False, *SEED)
        recorded = dispatched("_scaled_dot_product_flash_attention_backward", args)
    else:
        recorded = dispatched("_scaled_dot_product_efficient_attention", (Q, K, V, None, True))
    cost = op_cost(f"aten::{op}", *described(LENGTH_FIRST[op]))
    around = op_cost(recorded.name, *recorded.texts)
    assert cost.flops == around.flops == recorded.flops
    assert cost.read_bytes == around.read_bytes


def test_a_grouped_weight_gradient_counts_its_groups_once(dispatched: Callable[..., Any]) -> None:
    """torch's counter counts it as if there were no groups."""
    weight = meta(16, 2, 3, 3)
    for mask, factor in (([True, False, False], 1), ([False, True, False], 4)):
        args = (GRAD, X, weight, None, ONE, NIL, ONE, False, NIL, 4, mask)
        recorded = dispatched("convolution_backward", args)
        cost = op_cost(recorded.name, *recorded.texts)
        assert cost.flops is not None
        assert cost.flops * factor == recorded.flops
        assert cost.flops == 2 * 2 * 100 * weight.numel()


def test_packed_sequences_count_the_longest(dispatched: Callable[..., Any]) -> None:
    query, cumulated = meta(40, 4, 8), meta(4, dtype=torch.int32)
    args = (query, query, query, cumulated, cumulated, 16, 16, 0.0, False, False)
    recorded = dispatched("_flash_attention_forward", args)
    cost = op_cost(recorded.name, *recorded.texts)
    assert cost.flops == recorded.flops
    assert cost.note == "max_length_assumed"


def test_optimizer_lists_need_a_dtype_from_elsewhere(dispatched: Callable[..., Any]) -> None:
    parameters = [floats(4, 8), floats(8)]
    recorded = dispatched("_foreach_add.List", (parameters, parameters))
    blind = op_cost(recorded.name, *recorded.texts)
    assert (blind.flops, blind.read_bytes, blind.note) == (40, None, "list_dtype_not_recorded")
    told = op_cost(recorded.name, *recorded.texts, list_dtype="float")
    assert (told.read_bytes, told.write_bytes) == (2 * 160, 160)
