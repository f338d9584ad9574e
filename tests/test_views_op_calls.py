"""Calls of ops with all that runs inside them, and the patterns that runs of calls spell out."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import Row, kernel, launch, op, write_trace
from neuron_explorer.trace import Trace

FULL, COLUMN = [8, 64], [8, 1]


def opened(folder: Path, rows: list[Row]) -> Trace:
    return Trace.open([write_trace(folder / "trace.parquet", rows)])


def test_a_call_has_the_work_of_the_ops_inside_it_and_of_its_backward(tmp_path: Path) -> None:
    rows = [
        op(0, 100, name="aten::linear", sequence=7),
        op(10, 50, name="aten::addmm", parent_id=0),
        launch(20, 5, op_id=1),
        kernel(30, 40, op_id=1, launch_id=2),
        op(100, 50, name="aten::relu"),
        op(200, 50, name="aten::mm", forward_id=0, phase="backward"),
        launch(210, 5, op_id=5),
        kernel(220, 60, op_id=5, launch_id=6),
    ]
    calls = opened(tmp_path, rows).sql("SELECT * FROM op_calls ORDER BY place").to_pylist()
    assert [(c["name"], c["works"], c["work_ns"], c["backward_ns"]) for c in calls] == [
        ("aten::linear", 1, 40, 60),
        ("aten::relu", 0, None, None),
        ("aten::mm", 1, 60, None),
    ]
    assert calls[0]["work_ids"] == [3]
    assert calls[0]["backward_ids"] == [7]


def test_without_a_device_a_call_counts_with_its_own_time(tmp_path: Path) -> None:
    rows = [op(0, 100, name="aten::mul"), op(10, 5, name="aten::copy_", parent_id=0)]
    (call,) = opened(tmp_path, rows).sql("SELECT work_ns, paced_ns FROM op_calls").to_pylist()
    assert call == {"work_ns": 100, "paced_ns": 100}


def written(*ops: tuple[str, str, list[object], list[int]]) -> list[Row]:
    return [
        op(
            number * 100,
            50,
            name=f"aten::{name}",
            family=family,
            input_shapes=inputs,
            output_shapes=[output],
        )
        for number, (name, family, inputs, output) in enumerate(ops)
    ]


NORM: list[tuple[str, str, list[object], list[int]]] = [
    ("mean", "reduction", [FULL, [], [], []], COLUMN),
    ("var", "reduction", [FULL, [], [], []], COLUMN),
    ("sub", "elementwise", [FULL, COLUMN, []], FULL),
    ("add", "elementwise", [COLUMN, [], []], COLUMN),
    ("sqrt", "elementwise", [COLUMN], COLUMN),
    ("div", "elementwise", [FULL, COLUMN], FULL),
    ("mul", "elementwise", [FULL, [64]], FULL),
]


def patterns(folder: Path, rows: list[Row]) -> list[dict[str, object]]:
    asked = "SELECT pattern, first_place, last_place, letters FROM op_patterns"
    return list(opened(folder, rows).sql(asked).to_pylist())


def test_a_layer_norm_in_seven_ops_is_one_pattern(tmp_path: Path) -> None:
    (found,) = patterns(tmp_path, written(*NORM))
    assert found == {
        "pattern": "layer_norm",
        "first_place": 1,
        "last_place": 7,
        "letters": "mvserdw",
    }


@pytest.mark.parametrize("left_out", [(0, 1), (3, 4, 1), (5,)])
def test_what_lacks_its_statistics_or_its_division_is_none(
    tmp_path: Path, left_out: tuple[int, ...]
) -> None:
    rows = written(*[each for place, each in enumerate(NORM) if place not in left_out])
    assert patterns(tmp_path, rows) == []


@pytest.mark.parametrize(("reads", "found"), [([8, 64], 1), ([8, 32], 0)])
def test_attention_needs_scores_that_the_second_product_reads(
    tmp_path: Path, reads: list[int], found: int
) -> None:
    rows = written(
        ("matmul", "matmul", [[8, 16], [16, 64]], FULL),
        ("softmax", "softmax", [FULL, [], []], FULL),
        ("matmul", "matmul", [reads, [reads[1], 16]], [8, 16]),
    )
    assert len(patterns(tmp_path, rows)) == found


LOG_SOFTMAX: list[tuple[str, str, list[object], list[int]]] = [
    ("max", "reduction", [FULL, [], []], COLUMN),
    ("sub", "elementwise", [FULL, COLUMN, []], FULL),
    ("exp", "elementwise", [FULL], FULL),
    ("sum", "reduction", [FULL, [], [], []], COLUMN),
    ("log", "elementwise", [COLUMN], COLUMN),
    ("sub", "elementwise", [FULL, COLUMN, []], FULL),
]


def test_the_logarithm_of_a_softmax_in_six_ops_is_one_pattern(tmp_path: Path) -> None:
    (found,) = patterns(tmp_path, written(*LOG_SOFTMAX))
    assert (found["pattern"], found["letters"]) == ("log_softmax", "ksxajs")


def test_a_sum_of_exponentials_that_is_not_taken_off_is_none(tmp_path: Path) -> None:
    assert patterns(tmp_path, written(*LOG_SOFTMAX[2:5])) == []


BINARY_LOSS: list[tuple[str, str, list[object], list[int]]] = [
    ("sigmoid", "activation", [FULL], FULL),
    ("add", "elementwise", [FULL, [], []], FULL),
    ("log", "elementwise", [FULL], FULL),
    ("mul", "elementwise", [FULL, FULL], FULL),
    ("rsub", "elementwise", [FULL, [], []], FULL),
    ("rsub", "elementwise", [FULL, [], []], FULL),
    ("log", "elementwise", [FULL], FULL),
    ("mul", "elementwise", [FULL, FULL], FULL),
    ("add", "elementwise", [FULL, FULL, []], FULL),
]


@pytest.mark.parametrize(("begins", "found"), [(0, 1), (1, 0)])
def test_a_binary_cross_entropy_begins_with_a_sigmoid(
    tmp_path: Path, begins: int, found: int
) -> None:
    rows = written(*BINARY_LOSS[begins:])
    assert [each["pattern"] for each in patterns(tmp_path, rows)] == [
        "binary_cross_entropy"
    ] * found
