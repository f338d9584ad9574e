"""A matrix that is turned around for a matmul need not be; for other readers that is not known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import op, step
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

MS = 1_000_000
SHAPES, TURNED = "[[64,256],[256,512]]", "[[256,1],[512,1]]"


@pytest.mark.parametrize(
    ("reader", "shapes", "strides", "begin_ms", "low_ms"),
    [
        ("aten::mm", SHAPES, TURNED, 6, 3),
        ("aten::addmm", "[[512],[64,256],[256,512],[],[]]", "[[1],[256,1],[512,1],[],[]]", 6, 3),
        ("aten::mm", "[[64,512],[512,256]]", "[[512,1],[256,1]]", 6, 0),  # reads another
        ("aten::mm", SHAPES, "[[256,1],[1,256]]", 6, 0),  # reads what was not copied
        ("aten::mm", SHAPES, TURNED, 21, 0),  # reads the next step's
        ("aten::softmax", SHAPES, TURNED, 6, 0),
    ],
)
def test_a_matmul_reads_either_order(
    reader: str,
    shapes: str,
    strides: str,
    begin_ms: int,
    low_ms: int,
    open_trace: Callable[..., Trace],
) -> None:
    rows = [
        step(0, 0, 20 * MS),
        op(0, 5 * MS, name="aten::clone", tid=1, step=0),
        op(
            MS,
            4 * MS,
            name="aten::copy_",
            parent_id=1,
            tid=1,
            step=0,
            self_ns=4 * MS,
            input_shapes="[[256,512],[256,512],[]]",
            input_strides="[[512,1],[1,256],[]]",
            input_dtypes='["float","float",""]',
        ),
        step(1, 20 * MS, 20 * MS),
        op(
            begin_ms * MS,
            9 * MS,
            name=reader,
            tid=1,
            step=begin_ms // 20,
            input_shapes=shapes,
            input_strides=strides,
        ),
    ]
    (found,) = run(open_trace(rows), only=["layout_copies"]).findings
    # 4 ms, less a quarter as CPU times stray
    assert (found.saving_low_ns, found.device_time_ns) == (low_ms * MS, 4 * MS)
