"""Recorded ops for tests: rows of a trace with shapes, dtypes, strides and scalar arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builders import Row, op
from neuron_explorer.analyzers.verify.recorded import RecordedOp, Slot

TENSOR = "float"


def recorded(
    name: str, slots: Sequence[tuple[str, Any, Any]], start_ns: int, **columns: object
) -> Row:
    """A recorded op; each slot is a dtype, a shape and strides, or a scalar kind, [] and a text."""
    return op(
        start_ns,
        900_000,
        name=f"aten::{name}",
        input_dtypes=[dtype for dtype, _, _ in slots],
        input_shapes=[shape for _, shape, _ in slots],
        input_strides=[[] if isinstance(third, str) else third for _, _, third in slots],
        input_values=[third if isinstance(third, str) else "" for _, _, third in slots],
        source_file="model.py",
        source_line=7,
        source_via="line",
        **columns,
    )


def tensor(*shape: int, dtype: str = TENSOR, strides: Sequence[int] | None = None) -> Any:
    dense: list[int] = []
    reach = 1
    for size in reversed(shape):
        dense.insert(0, reach)
        reach *= size
    return dtype, list(shape), list(strides) if strides is not None else dense


def scalar(text: str) -> tuple[str, list[int], str]:
    return "Scalar", [], text


def chain(start_ns: int, *, size: int = 64) -> list[Row]:
    """`mul`, `tanh`, `add` of equal tensors: a run of eager ops that a compiler would fuse."""
    one = tensor(size, 32)
    return [
        recorded("mul", [one, one], start_ns, **_cost(size)),
        recorded("tanh", [one], start_ns + 1_000_000, **_cost(size)),
        recorded("add", [one, one, scalar("1")], start_ns + 2_000_000, **_cost(size)),
    ]


def two_runs(*, size: int = 64) -> list[Row]:
    """The same run twice, a matrix product between them."""
    product = [tensor(8, 8), tensor(8, 8)]
    between = recorded("mm", product, 5_000_000, family="matmul", output_shapes=[[8, 8]])
    return [*chain(0, size=size), between, *chain(10_000_000, size=size)]


def of_rows(rows: Sequence[Row]) -> list[RecordedOp]:
    """The same as the replays read them from a trace."""
    return [
        RecordedOp(
            number,
            str(row["name"]),
            tuple(
                Slot(dtype, _frozen(shape), _frozen(strides), value)
                for dtype, shape, strides, value in zip(
                    _list(row, "input_dtypes"),
                    _list(row, "input_shapes"),
                    _list(row, "input_strides"),
                    _list(row, "input_values"),
                    strict=True,
                )
            ),
            900_000,
        )
        for number, row in enumerate(rows)
    ]


def one(name: str, *slots: tuple[str, Any, Any]) -> RecordedOp:
    return of_rows([recorded(name, slots, 0)])[0]


def _list(row: Row, name: str) -> list[Any]:
    value = row[name]
    assert isinstance(value, list)
    return value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _cost(size: int) -> dict[str, object]:
    moved = size * 32 * 4
    return {
        "family": "elementwise",
        "read_bytes": moved,
        "write_bytes": moved,
        "output_shapes": [[size, 32]],
        "flops": size * 32,
    }
