"""Small eager ops on the memory side of the roofline, and what fusing them gives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import Row, kernel, launch, op, step
from neuron_explorer.analyzers import run
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

OpenTrace = Callable[..., Trace]

SHAPE = [1, 141, 512]
TENSOR = 141 * 512 * 2
ADD_NS, NORM_NS = 1_600, 3_000


def unit(place: int, name: str, kernel_ns: int, **cost: object) -> list[Row]:
    """An op on line 465, its launch and its kernel."""
    line = {"source_file": "/bert.py", "source_line": 465, "source_function": "forward"}
    shapes = {"input_shapes": [SHAPE], "input_dtypes": ["c10::Half"], "output_shapes": [SHAPE]}
    first = 3 * place
    return [
        op(place * 9_000, 8_000, name=name, **line, **shapes, **cost),
        launch(place * 9_000 + 100, 4_000, op_id=first, **line),
        kernel(place * 9_000 + 5_000, kernel_ns, op_id=first, launch_id=first + 1, **line, **cost),
    ]


def add(place: int, kernel_ns: int = ADD_NS) -> list[Row]:
    cost = {
        "family": "elementwise",
        "read_bytes": 2 * TENSOR,
        "write_bytes": TENSOR,
        "flops": 72_192,
    }
    return unit(place, "aten::add", kernel_ns, **cost)


def norm(place: int, kernel_ns: int = NORM_NS) -> list[Row]:
    cost = {"family": "norm", "read_bytes": TENSOR, "write_bytes": TENSOR, "flops": 577_536}
    return unit(place, "aten::native_layer_norm", kernel_ns, **cost)


def findings(trace: Trace, analyzer: str) -> list[Finding]:
    return run(trace, only=[analyzer]).findings


def test_small_ops_are_named_with_what_merging_them_saves(open_trace: OpenTrace) -> None:
    between = unit(2, "aten::mm", 100, family="matmul", read_bytes=1, write_bytes=1, flops=1)
    trace = open_trace([*add(0), *norm(1), *between, *add(3), *norm(4)])
    (found,) = findings(trace, "hbm_bound_eager_ops")
    assert found.severity == "info"
    assert found.title == "Small memory-bound eager ops: native_layer_norm, add"
    assert found.evidence["tier"] == "below the roof"
    assert found.evidence["intensity"] == 0.9
    assert found.evidence["ridge"] == 20.0
    assert "kernels of 2.3 us are mostly start-up and latency" in found.message
    # the add of each pair goes with all its time; the norm stays, less the bytes it reads back
    read_back_ns = TENSOR / 3.35e12 * 1e9
    device_ns = found.evidence
    assert device_ns["device_saving_high_ns"] == pytest.approx(2 * (ADD_NS + read_back_ns), abs=2)
    # nothing of a forward alone is kept for a backward: what the add writes goes too
    assert device_ns["device_saving_low_ns"] == pytest.approx(4 * read_back_ns, abs=2)
    # each launch but the last comes late: the host sets the pace, and faster kernels gain nothing
    assert (found.saving_high_ns or 0) < 2 * ADD_NS


def test_without_a_neighbour_the_saving_is_unknown(open_trace: OpenTrace) -> None:
    (found,) = findings(open_trace(norm(0)), "hbm_bound_eager_ops")
    assert (found.saving_low_ns, found.saving_high_ns) == (None, None)
    assert found.saving_basis.startswith("unknown")


def test_a_long_kernel_below_the_roof_is_not_called_small(open_trace: OpenTrace) -> None:
    (found,) = findings(open_trace(norm(0, kernel_ns=900_000)), "hbm_bound_eager_ops")
    assert found.title.startswith("Memory-bound eager ops far below the roof")
    assert "not the number of bytes sets their time" in found.message
    assert "start-up" not in found.message


def test_matrix_work_below_both_roofs_is_not_listed(open_trace: OpenTrace) -> None:
    cost = {"family": "matmul", "read_bytes": 660_000, "write_bytes": 150_000, "flops": 74_000_000}
    assert findings(open_trace(unit(0, "aten::mm", 5_700, **cost)), "hbm_bound_eager_ops") == []


def test_a_padding_op_is_an_opportunity(open_trace: OpenTrace) -> None:
    wide, narrow = [888, 3072], [888, 2880]
    written, copied = 888 * 3072 * 2, 888 * 2880 * 2
    line = {"source_file": "/moe.py", "source_line": 1696, "source_function": "forward_native"}
    fill = {"family": "fill", "read_bytes": 0, "write_bytes": written}
    copy = {"family": "copy", "read_bytes": copied, "write_bytes": copied}
    bf16 = {"input_dtypes": ["c10::BFloat16"]}
    rows = [
        op(0, 900, name="aten::constant_pad_nd", **line),
        op(10, 90, name="aten::fill_", parent_id=0, input_shapes=[wide], output_shapes=[wide],
           **bf16, **fill, **line),
        op(110, 90, name="aten::copy_", parent_id=0, input_shapes=[narrow, narrow],
           output_shapes=[narrow], **bf16, **copy, **line),
        kernel(1_000, 3_200, op_id=1, **fill, **line),
        kernel(4_200, 7_000, op_id=2, **copy, **line),
    ]  # fmt: skip
    (found,) = findings(open_trace(rows), "compile_opportunities")
    assert found.evidence["bytes_saved"] == copied
    assert "could be spared: fill that the next op writes over" in found.message
    sure_ns = found.evidence["device_saving_low_ns"]
    assert sure_ns == pytest.approx(0.6 * copied / 3.35e12 * 1e9, abs=1)
    assert found.saving_low_ns == 0, "no launches: whether the device sets the pace is unknown"
    assert found.advice.startswith("Put @torch.compile on forward_native()")


def read_back(start: int, number: int, **columns: object) -> list[Row]:
    line = {"source_file": "/train.py", "source_line": 87}
    read = {"name": "aten::_local_scalar_dense", "family": "copy", **line, **columns}
    return [
        step(number, start, 900),
        op(start, 100, name="aten::mm", family="matmul", step=number),
        op(start + 200, 20, step=number, **read),
    ]


def test_without_a_device_a_read_of_a_value_is_named_for_the_port(open_trace: OpenTrace) -> None:
    report = run(open_trace([*read_back(0, 0), *read_back(1_000, 1)]), only=["host_syncs"])
    (found,) = report.findings
    assert (found.source_file, found.source_line) == ("/train.py", 87)
    assert (found.severity, found.confidence) == ("info", "high")
    assert (found.saving_low_ns, found.saving_high_ns) == (None, None)
    assert found.title == "On an accelerator the host would wait: .item()"
    assert found.message == (
        "It costs nothing here, but on an accelerator this line makes the host wait for the device"
        " in every step (calls: 2, steps: 2)."
    )


def test_an_optimizer_reads_its_step_count_on_the_host_anyway(open_trace: OpenTrace) -> None:
    rows = [*read_back(0, 0, phase="optimizer"), *read_back(1_000, 1, phase="optimizer")]
    report = run(open_trace(rows), only=["host_syncs"])
    assert report.ran == ["host_syncs"]
    assert report.findings == []


def test_idle_time_of_many_lines_points_at_none(open_trace: OpenTrace) -> None:
    rows: list[Row] = [kernel(0, 70_000)]
    for place in range(3):
        start = 100_000 * (place + 1)
        line = {"source_file": "/lib/m.py", "source_line": place, "module_class": "Block"}
        rows += [
            op(start - 900, 800, name="aten::mul", **line),
            launch(start - 300, 50, op_id=len(rows)),
            kernel(start, 70_000, op_id=len(rows), launch_id=len(rows) + 1, **line),
        ]
    (found,) = run(open_trace(rows), only=["device_idle"]).findings
    assert (found.source_file, found.source_line) == (None, None)
    assert (found.evidence["spread_lines"], found.evidence["top_share"]) == (3, 0.333)
    assert "spread over 3 lines; 33 % of it at m.py:2 in Block, before aten::mul" in found.message


@pytest.mark.parametrize(("name", "spared"), [("aten::add_", 10_667), ("aten::addcmul_", 5_333)])
def test_an_optimizers_state_is_written_whoever_reads_it_next(
    name: str, spared: int, open_trace: OpenTrace
) -> None:
    shape, size = [4096, 1024], 4096 * 1024 * 4
    line = {"source_file": "/train.py", "source_line": 9, "source_function": "main"}
    about = {"input_shapes": [shape, shape], "input_dtypes": ["float", "float"]}
    about |= {"output_shapes": [shape], "family": "elementwise", "phase": "optimizer", "flops": 1}
    rows: list[Row] = []
    for place, each in enumerate((name, "aten::sqrt")):
        cost = {"read_bytes": 2 * size, "write_bytes": size}
        first = 3 * place
        rows += [
            op(place * 60_000, 8_000, name=each, **line, **about, **cost),
            launch(place * 60_000 + 100, 4_000, op_id=first, phase="optimizer", **line),
            kernel(
                place * 60_000 + 5_000,
                16_000,
                op_id=first,
                launch_id=first + 1,
                family="elementwise",
                phase="optimizer",
                **line,
                **cost,
            ),
        ]
    # a third of the first op is its write, a third of the second what it reads back
    (found,) = findings(open_trace(rows), "hbm_bound_eager_ops")
    assert found.evidence["device_saving_high_ns"] == spared
