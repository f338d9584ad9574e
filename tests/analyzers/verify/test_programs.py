"""Recorded ops in a row become one function, each op fed by the one before it."""

from __future__ import annotations

import pytest
from recorded_ops import chain, of_rows, one, scalar, tensor

torch = pytest.importorskip("torch")

from neuron_explorer.analyzers.verify.programs import build, bytes_needed  # noqa: E402

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()[1:]]


def test_each_op_takes_what_the_one_before_it_made() -> None:
    program = build(of_rows(chain(0)), CPU)
    assert _lines(program.text) == [
        "v0 = op0(x0, x1)",
        "v1 = op1(v0)",
        "v2 = op2(v1, x2, alpha=1)",
        "return (v2, )",
    ]
    x, y, z = program.inputs
    torch.testing.assert_close(program.run()[0], torch.tanh(x * y) + z)


def test_a_result_of_another_shape_feeds_as_a_view_and_others_do_not() -> None:
    flat = build([one("tanh", tensor(4, 8)), one("tanh", tensor(32))], CPU)
    assert "v1 = op1(v0.view([32]))" in flat.text
    other = build([one("tanh", tensor(4, 8)), one("tanh", tensor(5))], CPU)
    assert _lines(other.text)[-1] == "return (v0, v1, )"
    assert other.notes == ("aten::tanh takes nothing that the op before it made",)


def test_a_copy_reads_the_result_instead_of_writing_over_it() -> None:
    copy = one("copy_", tensor(4, 8), tensor(4, 8), scalar("False"))
    program = build([one("tanh", tensor(4, 8)), copy], CPU)
    assert "v1 = op1(x1, v0, False)" in program.text


def test_the_right_one_of_several_results_is_taken() -> None:
    norm = one(
        "native_layer_norm",
        tensor(4, 8),
        ("ScalarList", [], "[8]"),
        tensor(8),
        tensor(8),
        scalar("1e-5"),
    )
    program = build([norm, one("tanh", tensor(4, 1))], CPU)
    assert "v1 = op1(v0[1])" in program.text
    assert _lines(program.text)[-1] == "return (v0[0], v0[2], v1, )"


def test_what_runs_in_place_can_be_undone() -> None:
    program = build([one("mul_", tensor(4, 8), tensor(dtype="double"))], CPU)
    first = program.inputs[0].clone()
    for _ in range(3):
        program.run()
    assert not torch.equal(program.inputs[0], first)
    program.reset()
    assert torch.equal(program.inputs[0], first)


def test_bytes_are_those_of_all_tensors_of_all_ops() -> None:
    assert bytes_needed(of_rows(chain(0)), CPU) == 5 * 64 * 32 * 4
