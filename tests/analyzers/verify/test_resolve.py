"""A recorded op finds the overload that ran, and its arguments are those that were recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_ops import one, scalar, tensor

from neuron_explorer.analyzers.verify.recorded import CannotReplayError, ops_by_id
from neuron_explorer.collectors.importers import import_file
from neuron_explorer.trace import Trace

torch = pytest.importorskip("torch")

from neuron_explorer.analyzers.verify.programs import build  # noqa: E402  only where torch is
from neuron_explorer.analyzers.verify.resolve import Call, resolve  # noqa: E402
from neuron_explorer.analyzers.verify.tensors import Spec, make  # noqa: E402

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")

NOTHING: tuple[str, list[int], str] = ("", [], "")
LIST = "ScalarList"

RECORDED: list[tuple[str, list[Any], str]] = [
    ("mul", [tensor(4, 3), tensor(4, 3)], "mul.Tensor"),
    ("mul", [tensor(4, 3), scalar("0.5")], "mul.Scalar"),
    ("add", [tensor(4, 3), tensor(dtype="double"), scalar("1")], "add.Tensor"),
    ("add_", [tensor(4, 3), tensor(4, 3), scalar("1")], "add_.Tensor"),
    ("pow", [tensor(4, 3), scalar("2")], "pow.Tensor_Scalar"),
    ("mm", [tensor(4, 3), tensor(3, 5, strides=[1, 3])], "mm.default"),
    (
        "addmm",
        [tensor(5), tensor(4, 3), tensor(3, 5), scalar("1"), scalar("1")],
        "addmm.default",
    ),
    ("sum", [tensor(4, 3), (LIST, [], "[1]"), scalar("False"), NOTHING], "sum.dim_IntList"),
    ("_softmax", [tensor(4, 3), scalar("-1"), scalar("False")], "_softmax.default"),
    ("gelu", [tensor(4, 3), NOTHING], "gelu.default"),
    (
        "native_layer_norm",
        [tensor(4, 8), (LIST, [], "[8]"), tensor(8), tensor(8), scalar("1.0000000000000001e-05")],
        "native_layer_norm.default",
    ),
    ("cat", [("TensorList", [[2, 3], [4, 3]], [[3, 1], [3, 1]]), scalar("0")], "cat.default"),
    (
        "embedding",
        [tensor(9, 4), tensor(2, 5, dtype="long int"), scalar("-1"), *[scalar("False")] * 2],
        "embedding.default",
    ),
    (
        "nll_loss_forward",
        [tensor(6, 9), tensor(6, dtype="long"), NOTHING, scalar("1"), scalar("-100")],
        "nll_loss_forward.default",
    ),
    (
        "gather",
        [tensor(6, 9), scalar("1"), tensor(6, 1, dtype="long int"), scalar("False")],
        "gather.default",
    ),
    (
        "masked_fill",
        [tensor(4, 4), tensor(4, 4, dtype="bool"), scalar("-inf")],
        "masked_fill.Scalar",
    ),
    (
        "_to_copy",
        [tensor(4, 4), scalar("15"), *[NOTHING] * 3, scalar("False"), NOTHING],
        "_to_copy.default",
    ),
    (
        "empty",
        [(LIST, [], "[4, 3]"), scalar("6"), scalar("0"), *[NOTHING] * 2, scalar("0")],
        "empty.memory_format",
    ),
]


@pytest.mark.parametrize(("name", "slots", "overload"), RECORDED)
def test_the_overload_that_ran_is_found_and_runs(
    name: str, slots: list[Any], overload: str
) -> None:
    recorded = one(name, *slots)
    call = resolve(recorded, CPU)
    assert str(call.overload) == f"aten.{overload}"
    build([recorded], CPU).run()


def test_tensors_have_the_recorded_layout_and_dtype() -> None:
    program = build([one("mm", tensor(4, 3), tensor(3, 5, strides=[1, 3]))], CPU)
    assert [(x.shape, x.stride(), x.dtype) for x in program.inputs] == [
        ((4, 3), (3, 1), torch.float32),
        ((3, 5), (1, 3), torch.float32),
    ]


def test_scalars_are_those_recorded() -> None:
    call = resolve(one("_softmax", tensor(4, 3), scalar("-1"), scalar("False")), CPU)
    assert _plain(call) == {"dim": -1, "half_to_float": False}


def test_numbers_of_dtypes_and_formats_become_those_of_torch() -> None:
    slots = [(LIST, [], "[4, 3]"), scalar("15"), scalar("0"), NOTHING, NOTHING, scalar("2")]
    assert _plain(resolve(one("empty", *slots), CPU)) == {
        "size": [4, 3],
        "dtype": torch.bfloat16,
        "layout": torch.strided,
        "device": CPU,
        "pin_memory": None,
        "memory_format": torch.channels_last,
    }


@pytest.mark.parametrize(
    ("name", "slots", "why"),
    [
        ("_softmax", [tensor(4, 3), NOTHING, NOTHING], "aten::_softmax: .* record dim"),
        ("mul", [tensor(4, 3)], "no overload of aten::mul"),
        ("no_such_op", [tensor(4, 3)], "has no op aten::no_such_op"),
        ("tanh", [tensor(4, dtype="c10::quint4x2")], "dtype c10::quint4x2"),
        ("mul", [], "arguments of aten::mul are not recorded"),
        ("pow", [tensor(3), scalar("spam")], "'spam' cannot be read"),
    ],
)
def test_what_is_missing_is_named(name: str, slots: list[Any], why: str) -> None:
    with pytest.raises(CannotReplayError, match=why):
        resolve(one(name, *slots), CPU)


def test_a_default_in_place_of_an_unrecorded_scalar_is_said() -> None:
    unrecorded: tuple[str, list[int], str] = ("Scalar", [], "")
    call = resolve(one("add", tensor(3), tensor(3), unrecorded), CPU)
    assert _plain(call) == {"alpha": 1}
    assert call.notes == ("aten::add: alpha is not recorded, so its default was used",)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 40)), max_size=4),
    st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.bool]),
)
def test_any_layout_can_be_made(sizes: list[tuple[int, int]], dtype: Any) -> None:
    shape = tuple(size for size, _ in sizes)
    strides = tuple(stride for _, stride in sizes)
    wanted = Spec(shape, strides, dtype, below=3)
    made = make(wanted, CPU)
    assert (tuple(made.shape), made.stride(), made.dtype) == (shape, strides, dtype)
    assert made.untyped_storage().nbytes() == wanted.bytes
    if dtype == torch.int64:
        assert 0 <= int(made.min()) <= int(made.max()) < 3


MOSTLY = {"h100-bert-small.json.gz": 0.98, "mi250-rocm62.json.gz": 1.0, "gtx1650-stacks.json": 0.99}
"""Share of the recorded calls of aten ops that can be made again: measured, and no less."""


@pytest.mark.parametrize("name", MOSTLY)
def test_most_ops_of_a_real_trace_can_be_made_again(
    name: str, traces: Path, tmp_path: Path
) -> None:
    import_file(traces / "kineto" / name, tmp_path / "trace.parquet")
    trace = Trace.open([tmp_path / "trace.parquet"])
    rows = trace.sql("SELECT event_id FROM ops WHERE name LIKE 'aten::%' AND rank = 0")
    ids = [row["event_id"] for row in rows.to_pylist()]
    ops = [op for op in ops_by_id(trace, 0, ids).values() if op.slots]
    assert len(ops) > 40
    assert sum(map(_resolves, ops)) / len(ops) >= MOSTLY[name]


def _resolves(op: Any) -> bool:
    try:
        resolve(op, CPU)
    except CannotReplayError:
        return False
    return True


def _plain(call: Call) -> dict[str, object]:
    return {name: value for name, _, value in call.arguments if not isinstance(value, Spec)}
