"""What holds for every op call, however odd."""

from __future__ import annotations

import json
from math import prod
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer.collectors.costs import NOTES, op_cost
from neuron_explorer.collectors.costs.registry import names

FLOAT, SCALAR = "float", "Scalar"
NAMES = [name.replace("*", "x").replace("?", "x") for name in names()]

sizes = st.lists(st.integers(0, 9), max_size=5)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)
text = st.one_of(st.none(), st.text(max_size=30), any_json.map(json.dumps))
dtype = st.sampled_from(
    [FLOAT, "c10::BFloat16", "long int", "bool", "", SCALAR, "TensorList", "odd"]
)
value = st.sampled_from(["", "1", "-1", "True", "[1, 1]", "[0]", "0.5", "[True, True, False]", "x"])


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def check(cost: Any) -> None:
    for figure in (cost.flops, cost.read_bytes, cost.write_bytes):
        assert figure is None or 0 <= figure < 2**63
    known = cost.flops is not None or cost.read_bytes is not None or cost.write_bytes is not None
    assert (cost.via == "formula") == known
    if cost.read_bytes is None or cost.write_bytes is None:
        assert cost.note
    for code in (cost.note or "").split("; "):
        assert not code or code in NOTES
    if cost.output_shapes is not None:
        assert all(isinstance(shape, list) for shape in json.loads(cost.output_shapes))


@given(st.one_of(st.sampled_from(NAMES), st.text()), text, text, text, text)
def test_arbitrary_text_never_raises(
    name: str, shapes: str | None, dtypes: str | None, strides: str | None, values: str | None
) -> None:
    check(op_cost(name, shapes, dtypes, strides, values))


@given(
    st.sampled_from(NAMES),
    st.lists(st.tuples(sizes, dtype, value, st.booleans()), max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_plausible_calls_have_sound_costs(
    name: str,
    args: list[tuple[list[int], str, str, bool]],
    with_strides: bool,  # noqa: FBT001 - drawn by hypothesis
    with_values: bool,  # noqa: FBT001
) -> None:
    shapes = [[shape, shape] if nested else shape for shape, _, _, nested in args]
    strides = [[[1] * len(s)] * 2 if nested else [1] * len(s) for s, _, _, nested in args]
    cost = op_cost(
        name,
        compact(shapes),
        compact([kind for _, kind, _, _ in args]),
        compact(strides) if with_strides else None,
        compact([text for _, _, text, _ in args]) if with_values else None,
    )
    check(cost)


dims = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(dims, st.data())
def test_a_broadcast_operand_is_read_at_its_own_size(shape: list[int], data: st.DataObject) -> None:
    small = [n if data.draw(st.booleans()) else 1 for n in shape]
    cost = op_cost(
        "aten::add",
        compact([shape, small, []]),
        compact([FLOAT, FLOAT, SCALAR]),
        None,
        compact(["", "", "1"]),
    )
    assert cost.read_bytes == 4 * (prod(shape) + prod(small))
    assert cost.write_bytes == 4 * prod(shape)
    assert cost.output_shapes == compact([shape])
    assert cost.flops == prod(shape)


def dense_strides(shape: list[int]) -> list[int]:
    return [prod(shape[place + 1 :]) for place in range(len(shape))]


@given(st.sampled_from(NAMES), dims, st.data())
def test_an_expanded_input_never_costs_more_than_a_dense_one(
    name: str, shape: list[int], data: st.DataObject
) -> None:
    strides = dense_strides(shape)
    expanded = [0 if data.draw(st.booleans()) else step for step in strides]
    shapes, kinds = compact([shape, shape, []]), compact([FLOAT, FLOAT, SCALAR])
    values = compact(["", "", "1"])
    dense = op_cost(name, shapes, kinds, compact([strides, strides, []]), values)
    thin = op_cost(name, shapes, kinds, compact([expanded, strides, []]), values)
    if dense.family == "view" or thin.family in (None, "copy", "view"):
        return  # a copy that a dense input spares
    if dense.read_bytes is not None and thin.read_bytes is not None:
        assert thin.read_bytes <= dense.read_bytes
    assert thin.write_bytes == dense.write_bytes


@given(dims)
def test_absurd_sizes_are_null_not_wrong(shape: list[int]) -> None:
    huge = [n * 10**12 for n in shape] + [10**12]
    cost = op_cost("aten::relu", compact([huge]), compact([FLOAT]), None, None)
    assert (cost.flops, cost.read_bytes, cost.write_bytes) == (None, None, None)
    assert cost.note is not None
    assert "too_large" in cost.note


def test_a_negative_size_is_refused() -> None:
    assert op_cost("aten::relu", "[[-3,4]]", '["float"]', None, None).note == "bad_shapes"
