"""Registering formulas: refusals, patterns, a user's own file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from neuron_explorer.collectors.costs import (
    NOTES,
    FormulaError,
    Work,
    formula,
    load_user_formulas,
    notes,
    op_cost,
    registry,
)
from neuron_explorer.errors import NeuronExplorerError

FAMILIES = set(
    "elementwise reduction softmax norm embedding gather scatter copy cast cat pad matmul "  # noqa: SIM905
    "convolution attention optimizer random loss pooling sort scan fill view collective triton "
    "quantize rope other".split()
)
USER = """
from __future__ import annotations
from neuron_explorer.collectors.costs import Call, Work, formula

@formula("elementwise", "triple", namespace="mine::")
def triple(call: Call) -> Work:
    source = call.tensor(0)
    return Work(3 * source.numel, [source], [source.like()])
"""


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = set(registry.names())
    yield
    registry._forget(before)


def test_every_family_is_one_of_the_columns() -> None:
    found = {registry.find(name.replace("*", "x")) for name in registry.names()}
    assert {entry.family for entry in found if entry} <= FAMILIES


def test_a_name_has_one_formula() -> None:
    with pytest.raises(FormulaError, match="two formulas for aten::add"):
        formula("other", "add")(lambda _: Work())


def test_overloads_and_in_place_variants_need_no_name() -> None:
    args = "[[3],[3]]", '["float","float"]', None, None
    plain = op_cost("aten::mul", *args)
    assert op_cost("aten::mul.Tensor", *args) == plain
    assert op_cost("aten::mul_", *args) == plain


def test_the_longest_pattern_wins() -> None:
    entry = registry.find("triton_tem_fused_addmm_3")
    assert entry is not None
    assert entry.formula.__name__ == "template"


def test_every_note_is_explained_once() -> None:
    assert all(NOTES.values())
    assert not notes.WHY_NULL.keys() & notes.ASSUMED.keys()


def test_a_user_file_adds_formulas(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(USER, encoding="utf-8")
    assert load_user_formulas(path) == ["mine::triple"]
    cost = op_cost("mine::triple", "[[4]]", '["float"]', "[[1]]", '[""]')
    assert (cost.flops, cost.read_bytes, cost.write_bytes) == (12, 16, 16)
    with pytest.raises(FormulaError, match="two formulas for mine::triple"):
        load_user_formulas(path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = ", "SyntaxError"),
        ("import no_such_module_anywhere", "ModuleNotFoundError"),
        ("x = 1", "registers no formula"),
        (USER.replace('"triple", namespace="mine::"', '"add"'), "two formulas for aten::add"),
        ("raise RuntimeError('first\\nsecond')", "RuntimeError: first$"),
    ],
)
def test_a_wrong_user_file_is_one_clear_line(tmp_path: Path, body: str, message: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(body, encoding="utf-8")
    before = registry.names()
    with pytest.raises(NeuronExplorerError, match=message) as caught:
        load_user_formulas(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert registry.names() == before


def test_a_missing_user_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormulaError, match="no such file"):
        load_user_formulas(tmp_path / "none.py")
    (tmp_path / "list.txt").write_text("x", encoding="utf-8")
    with pytest.raises(FormulaError, match="must be a Python file"):
        load_user_formulas(tmp_path / "list.txt")


def test_a_formula_that_raises_becomes_a_note() -> None:
    def broken(_: object) -> Work:
        raise RuntimeError("mine")

    formula("other", "broken", namespace="mine::")(broken)
    assert op_cost("mine::broken", "[[4]]", None, None, None).note == "bad_arguments"
