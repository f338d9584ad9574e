"""Ops without a formula: torch's meta kernels."""

from __future__ import annotations

import pytest

from neuron_explorer.collectors.costs import op_cost
from neuron_explorer.collectors.costs.meta import meta_cost

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_an_op_without_a_formula_is_measured() -> None:
    args = "[[3,4,4]]", '["float"]', "[[16,4,1]]", '[""]'
    assert op_cost("aten::linalg_inv_ex", *args).note == "no_formula"
    cost = meta_cost("aten::matrix_exp", *args)
    assert (cost.read_bytes, cost.write_bytes, cost.via) == (192, 192, "meta")
    assert (cost.flops, cost.note) == (None, "from_meta; flops_unknown")
    assert cost.output_shapes == "[[3,4,4]]"


def test_meta_agrees_with_the_formula() -> None:
    shapes, kinds, strides = "[[4,8],[8,2]]", '["float","float"]', "[[8,1],[2,1]]"
    args = shapes, kinds, strides, '["",""]'
    meta, by_formula = meta_cost("aten::mm", *args), op_cost("aten::mm", *args)
    assert meta.flops == by_formula.flops
    assert (meta.read_bytes, meta.write_bytes) == (by_formula.read_bytes, by_formula.write_bytes)


def test_scalars_and_dtypes_reach_the_kernel() -> None:
    types = '["float","ScalarList","Scalar","Scalar"]'
    cost = meta_cost("aten::sum", "[[4,8],[],[],[]]", types, None, '["","[1]","True","7"]')
    assert (cost.output_shapes, cost.write_bytes) == ("[[4,1]]", 32)


def test_views_move_nothing() -> None:
    types = '["float","Scalar","Scalar"]'
    args = "[[4,8],[],[]]", types, "[[8,1],[],[]]", '["","0","1"]'
    cost = meta_cost("aten::transpose", *args)
    assert (cost.read_bytes, cost.write_bytes, cost.family) == (0, 0, "view")


@pytest.mark.parametrize(
    ("name", "shapes", "dtypes", "note"),
    [
        ("mylib::none", "[[3]]", '["float"]', "no_formula"),
        ("model.py(3): forward", "[[3]]", '["float"]', "no_formula"),
        ("aten::mm", "[[3,4],[5,6]]", '["float","float"]', "meta_failed"),
        ("aten::mm", "[[3,4],[4,6]]", None, "no_dtypes"),
        ("aten::mm", None, None, "no_shapes"),
        ("aten::mm", "[[3,4]]", '["float"]', "bad_arguments"),
    ],
)
def test_it_says_why_not(name: str, shapes: str | None, dtypes: str | None, note: str) -> None:
    cost = meta_cost(name, shapes, dtypes, None, None)
    assert (cost.via, cost.note, cost.read_bytes) == (None, note, None)
