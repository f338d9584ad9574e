"""What must hold for any trace, not only the golden ones."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Row, kernel, launch, op, write_trace
from neuron_explorer.analyzers import Report, run
from neuron_explorer.trace import Trace

few = settings(max_examples=6)  # opening a trace takes longer than judging it


def judge(rows: list[Row], only: str, **params: float) -> Report:
    with TemporaryDirectory() as folder:
        path = write_trace(Path(folder) / "trace.parquet", rows)
        with Trace.open([path]) as trace:
            return run(trace, [only], params)


@few
@given(st.lists(st.tuples(st.integers(0, 9_000), st.booleans()), min_size=1, max_size=12))
def test_every_long_gap_has_one_cause(gaps: list[tuple[int, bool]]) -> None:
    rows: list[Row] = []
    clock = 100_000
    rows.append(kernel(clock, 1_000))
    for gap_ns, launched_before in gaps:
        clock += 1_000 + gap_ns
        called = clock - gap_ns - 50 if launched_before else clock - min(gap_ns, 100)
        rows.append(launch(called, 10))
        rows.append(kernel(clock, 1_000, launch_id=len(rows) - 1))
    found = judge(rows, "device_idle", min_idle_share=0, min_cause_share=0).findings
    wanted = [gap_ns for gap_ns, _ in gaps if gap_ns >= 2_000]
    assert sum(finding.saving_high_ns or 0 for finding in found) == sum(wanted)
    assert sorted(len(finding.event_ids) for finding in found) == sorted(
        count
        for count in (
            sum(1 for gap_ns, before in gaps if gap_ns >= 2_000 and before),
            sum(1 for gap_ns, before in gaps if gap_ns >= 2_000 and not before),
        )
        if count
    )


@few
@given(st.integers(2, 6), st.integers(1, 400_000), st.integers(1, 5))
def test_a_saving_is_never_more_than_the_time_it_is_part_of(
    ops: int, kernel_ns: int, repeats: int
) -> None:
    shape, size = [[1024, 1024]], 1024 * 1024 * 4
    cost = {"family": "elementwise", "read_bytes": size, "write_bytes": size}
    shapes = {"input_shapes": shape, "input_dtypes": ["float"], "output_shapes": shape}
    rows: list[Row] = []
    last_ns = (ops * repeats - 1) * 500_000 + 10 + kernel_ns
    for number in range(ops * repeats):
        start, links = number * 500_000, {"op_id": len(rows), "launch_id": len(rows) + 1}
        rows += [
            op(start, 10, name="aten::exp", **shapes, **cost),
            launch(start + 1, 5, op_id=len(rows)),
            kernel(start + 10, kernel_ns, **links, **cost),
        ]
    for name in ("compile_opportunities", "hbm_bound_eager_ops"):
        for finding in judge(rows, name, min_share=0).findings:
            idle = finding.evidence.get("idle_between_ns") or 0
            assert isinstance(idle, int)
            assert 0 <= (finding.saving_low_ns or 0) <= (finding.saving_high_ns or 0)
            # a step that waits for its host gains time of the host: no more than there is
            device = finding.evidence.get("device_saving_high_ns", finding.saving_high_ns) or 0
            assert isinstance(device, int)
            assert device <= (finding.device_time_ns or 0) + idle
            assert (finding.saving_high_ns or 0) <= max(device, last_ns)
