"""Op by op: what the real profiler recorded on the CPU, against counted bytes and FLOPs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from neuron_explorer.collectors.costs import op_cost

torch = pytest.importorskip("torch")
F = torch.nn.functional

pytestmark = pytest.mark.torch


def f32(*shape: int) -> Any:
    return torch.rand(shape)


def bf16(*shape: int) -> Any:
    return torch.rand(shape).to(torch.bfloat16)


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
MASK = A > 0.5
IMAGE = f32(2, 8, 12, 12)
WIDE = ROW.expand(64, 32)

ELEMENTWISE = [
    Case("aten::add", lambda a, b: a + b, (A, B), "elementwise"),
    Case("aten::add", lambda a, b: a + b, (A, ROW), "elementwise"),
    Case("aten::add", lambda a, b: a + b, (f32(8, 1, 4), f32(6, 1)), "elementwise"),
    Case("aten::add", lambda a, b: a + b, (A, bf16(16, 32)), "elementwise"),
    Case("aten::add", lambda a, b: a + b, (ints(9, 4), f32(4)), "elementwise"),
    Case("aten::add", lambda a, b: a + b, (WIDE, f32(64, 32)), "elementwise"),
    Case("aten::add_", lambda a, b: a.add_(b), (A.clone(), ROW), "elementwise"),
    Case("aten::add", lambda a: a + 1, (ints(9, 4),), "elementwise"),
    Case("aten::sub", lambda a: a - 1.5, (ints(9, 4),), "elementwise"),
    Case("aten::mul", lambda a: a * 2.5, (A,), "elementwise"),
    Case("aten::mul", lambda a, b: a * b, (A.t(), f32(32, 16)), "elementwise"),
    Case("aten::mul_", lambda a: a.mul_(3), (A.clone(),), "elementwise"),
    Case("aten::div", lambda a, b: a / b, (ints(9, 4), ints(9, 4) + 1), "elementwise"),
    Case(
        "aten::mul",
        lambda a, b, c: torch.mul(a, b, out=c),
        (A, B, f32(16, 32)),
        "elementwise",
        read=A.nbytes + B.nbytes,
    ),
    Case("aten::eq", lambda a, b: a == b, (A, B), "elementwise"),
    Case("aten::gt", lambda a: a > 0, (A,), "elementwise"),
    Case("aten::where", torch.where, (MASK, A, B), "elementwise"),
    Case("aten::clamp", lambda a: a.clamp(0, 1), (A,), "elementwise"),
    Case("aten::clamp_min", lambda a: torch.clamp_min(a, 0), (A,), "elementwise"),
    Case("aten::relu", torch.relu, (A,), "elementwise"),
    Case("aten::gelu", F.gelu, (A,), "elementwise"),
    Case("aten::silu", F.silu, (A,), "elementwise"),
    Case("aten::exp", torch.exp, (ints(3, 4),), "elementwise"),
    Case("aten::rsqrt", torch.rsqrt, (bf16(7, 3),), "elementwise"),
    Case("aten::pow", lambda a: a**2, (A,), "elementwise"),
    Case("aten::neg", lambda a: -a, (A,), "elementwise"),
    Case("aten::addcmul", torch.addcmul, (A, B, ROW), "elementwise"),
    Case("aten::lerp", torch.lerp, (A, B, B.clone()), "elementwise"),
    Case(
        "aten::masked_fill_", lambda a, m: a.masked_fill_(m, 0.0), (A.clone(), MASK), "elementwise"
    ),
    Case("aten::bitwise_and", lambda a, b: a & b, (MASK, ~MASK), "elementwise"),
    Case("aten::logical_not", torch.logical_not, (A,), "elementwise"),
    Case("aten::glu", F.glu, (A,), "elementwise"),
    Case("aten::tril", torch.tril, (A,), "elementwise"),
    Case("aten::maximum", torch.maximum, (A, B), "elementwise"),
]

REDUCTIONS = [
    Case("aten::sum", lambda a: a.sum(), (A,), "reduction"),
    Case("aten::sum", lambda a: a.sum(1), (A,), "reduction"),
    Case("aten::sum", lambda a: a.sum((0, -1), keepdim=True), (f32(3, 4, 5),), "reduction"),
    Case("aten::sum", lambda a: a.sum(), (ints(9, 4).int(),), "reduction"),
    Case("aten::mean", lambda a: a.mean(-1, keepdim=True), (A,), "reduction"),
    Case("aten::mean", lambda a: a.mean(), (bf16(4, 4),), "reduction"),
    Case("aten::max", lambda a: a.max(), (A,), "reduction"),
    Case("aten::max", lambda a: a.max(0), (A,), "reduction"),
    Case("aten::max", torch.max, (A, B), "reduction"),
    Case("aten::argmax", lambda a: a.argmax(-1), (A,), "reduction"),
    Case("aten::amax", lambda a: a.amax(1), (A,), "reduction"),
    Case("aten::all", lambda a: a.all(), (MASK,), "reduction"),
    Case("aten::any", lambda a: a.any(1), (MASK,), "reduction"),
    Case("aten::var", lambda a: a.var(1), (A,), "reduction"),
    Case("aten::std", lambda a: a.std(), (A,), "reduction"),
    Case("aten::linalg_vector_norm", torch.linalg.vector_norm, (A,), "reduction"),
    Case("aten::logsumexp", lambda a: torch.logsumexp(a, 1), (A,), "reduction"),
    Case("aten::prod", lambda a: a.prod(1), (A,), "reduction"),
    Case("aten::_softmax", lambda a: a.softmax(-1), (A,), "softmax"),
    Case("aten::softmax", lambda a: a.softmax(-1, dtype=torch.float64), (A,), "softmax"),
    Case("aten::_log_softmax", lambda a: a.log_softmax(0), (A,), "softmax"),
    Case("aten::cumsum", lambda a: a.cumsum(0), (A,), "scan"),
    Case("aten::cumsum", lambda a: a.cumsum(0), (MASK,), "scan"),
    Case("aten::sort", lambda a: a.sort(-1), (A,), "sort"),
    Case("aten::topk", lambda a: a.topk(5), (A,), "sort"),
    Case("aten::argsort", lambda a: a.argsort(0), (A,), "sort"),
    Case("aten::histc", lambda a: a.histc(7), (A,), "reduction"),
]

MEMORY = [
    Case("aten::clone", torch.clone, (A,), "copy"),
    Case("aten::clone", lambda a: a.clone(memory_format=torch.contiguous_format), (WIDE,), "copy"),
    Case("aten::copy_", lambda a, b: a.copy_(b), (f32(16, 32), B), "copy", read=B.nbytes),
    Case("aten::copy_", lambda a, b: a.copy_(b), (f32(64, 32), WIDE), "copy", read=ROW.nbytes),
    Case("aten::_to_copy", lambda a: a.to(torch.bfloat16), (A,), "cast"),
    Case("aten::to", lambda a: a.to(torch.float64), (A,), "cast"),
    Case("aten::contiguous", torch.ops.aten.contiguous, (A.t(),), "copy"),
    Case("aten::reshape", lambda a: a.t().reshape(-1), (A,), "copy"),
    Case("aten::repeat", lambda a: a.repeat(3, 2), (A,), "copy"),
    Case("aten::flip", lambda a: a.flip(0), (A,), "copy"),
    Case("aten::roll", lambda a: a.roll(1, 0), (A,), "copy"),
    Case("aten::constant_pad_nd", lambda a: F.pad(a, (1, 2, 3, 4)), (A,), "pad"),
    Case("aten::reflection_pad2d", lambda a: F.pad(a, (1, 2, 3, 4), "reflect"), (IMAGE,), "pad"),
    Case("aten::fill_", lambda a: a.fill_(1), (A.clone(),), "fill", read=0),
    Case("aten::zero_", lambda a: a.zero_(), (A.clone(),), "fill", read=0),
    Case("aten::zeros", lambda: torch.zeros(3, 4, dtype=torch.bfloat16), (), "fill"),
    Case("aten::ones_like", torch.ones_like, (A,), "fill", read=0),
    Case("aten::full", lambda: torch.full((3, 4), 2.0), (), "fill"),
    Case("aten::new_zeros", lambda a: a.new_zeros(5), (bf16(3),), "fill", read=0),
    Case("aten::arange", lambda: torch.arange(3, 17, 2), (), "fill"),
    Case("aten::arange", lambda: torch.arange(10.0), (), "fill"),
    Case("aten::normal_", lambda a: a.normal_(), (A.clone(),), "random", read=0),
    Case("aten::uniform_", lambda a: a.uniform_(), (A.clone(),), "random", read=0),
    Case("aten::rand", lambda: torch.rand(4, 5), (), "random"),
    Case("aten::randn", lambda: torch.randn(4, 5, dtype=torch.float64), (), "random"),
    Case("aten::randint", lambda: torch.randint(0, 9, (7,)), (), "random"),
    Case("aten::randperm", lambda: torch.randperm(9), (), "random"),
    Case("aten::rand_like", torch.rand_like, (A,), "random", read=0),
    Case(
        "aten::native_dropout", lambda a: torch.native_dropout(a, p=0.5, train=True), (A,), "random"
    ),
    Case("aten::tril_indices", lambda: torch.tril_indices(5, 7, -1), (), "fill"),
    Case("aten::triu_indices", lambda: torch.triu_indices(5, 7, 1), (), "fill"),
    Case("aten::eye", lambda: torch.eye(5), (), "fill"),
    Case("aten::linspace", lambda: torch.linspace(0, 1, 11), (), "fill"),
]


def _name(case: Case) -> str:
    return case.op.removeprefix("aten::")


@pytest.mark.parametrize("case", [*ELEMENTWISE, *REDUCTIONS, *MEMORY], ids=_name)
def test_cost_equals_what_was_counted(case: Case, agrees: Callable[..., None]) -> None:
    agrees(*case)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "aten::view": lambda a: a.view(8, -1),
    "aten::reshape": lambda a: a.reshape(-1),
    "aten::transpose": lambda a: a.transpose(0, 1),
    "aten::t": lambda a: a.t(),
    "aten::permute": lambda a: a.permute(1, 0),
    "aten::expand": lambda a: a.expand(3, -1, -1),
    "aten::slice": lambda a: a[2:9:3],
    "aten::select": lambda a: a[3],
    "aten::unsqueeze": lambda a: a.unsqueeze(-1),
    "aten::squeeze": lambda a: a.squeeze(),
    "aten::split": lambda a: a.split(4),
    "aten::chunk": lambda a: a.chunk(4),
    "aten::unbind": lambda a: a.unbind(),
    "aten::detach": lambda a: a.detach(),
    "aten::narrow": lambda a: a.narrow(0, 1, 3),
    "aten::as_strided": lambda a: a.as_strided((4,), (2,)),
    "aten::alias": torch.ops.aten.alias,
    "aten::contiguous": torch.ops.aten.contiguous,
    "aten::empty_like": torch.empty_like,
    "aten::empty": lambda _: torch.empty(3),
    "aten::dropout": lambda a: F.dropout(a, training=False),
}


@pytest.mark.parametrize("op", VIEWS)
def test_views_and_allocations_move_nothing(op: str, profiled: Callable[..., Any]) -> None:
    recorded = profiled(op, VIEWS[op], (A,))
    cost = op_cost(op, *recorded.texts)
    assert (cost.flops, cost.read_bytes, cost.write_bytes, cost.family) == (0, 0, 0, "view")
    if cost.output_shapes and op not in ("aten::contiguous", "aten::dropout", "aten::empty"):
        shapes = [list(tensor.shape) for tensor in recorded.outputs]
        assert json.loads(cost.output_shapes) == shapes


def test_lists_of_tensors_have_no_dtype_in_a_trace(profiled: Callable[..., Any]) -> None:
    recorded = profiled("aten::cat", lambda a, b: torch.cat([a, b]), (A, B))
    cost = op_cost("aten::cat", *recorded.texts)
    assert (cost.read_bytes, cost.write_bytes) == (None, None)
    assert cost.note == "list_dtype_not_recorded"
    assert cost.output_shapes == "[[32,32]]"
