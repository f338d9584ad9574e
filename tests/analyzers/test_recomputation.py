"""On a CPU a recomputation takes from the call before it to the one behind."""

from __future__ import annotations

from collections.abc import Callable

from builders import Row, op, row
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

US = 1_000


def call(start_us: int, length_us: int, **columns: object) -> Row:
    shapes = {"input_shapes": [[8, 8]], "output_shapes": [[8, 8]], "family": "elementwise"}
    return op(start_us * US, length_us * US, name="aten::relu", **(shapes | columns))


def test_the_python_around_a_recomputation_goes_with_it(open_trace: Callable[..., Trace]) -> None:
    forward = {"phase": "forward", "name": "CheckpointFunction", "pid": 1, "tid": 1}
    rows = [
        row("framework", "autograd", 0, 130 * US, self_ns=30 * US, **forward),
        call(20, 100, phase="forward", parent_id=0),
        call(200, 100, phase="backward"),
        call(350, 100, phase="backward", recomputed=True),  # 50 us after the call before
        call(470, 100, phase="backward", recomputed=True),  # 20 us
        call(610, 100, phase="backward"),  # 40 us behind
    ]
    (found,) = run(open_trace(rows), only=["recomputation_cost"]).findings
    assert found.device_time_ns == 200 * US
    assert found.evidence["around_ns"] == (30 + 50 + 200 + 20 + 40) * US
