"""Savings of the step: what hides behind the host, and what all findings are worth together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import Row, kernel, launch, op, step, write_trace
from neuron_explorer.analyzers import run
from neuron_explorer.analyzers.found import Found
from neuron_explorer.analyzers.savings import of_the_step
from neuron_explorer.findings import Combined, Finding
from neuron_explorer.trace import Trace

OpenTrace = Callable[..., Trace]

US = 1_000


def launched(host_us: int, start_us: int, us: int, at: int, **columns: object) -> list[Row]:
    return [launch(host_us * US, 2 * US), kernel(start_us * US, us * US, launch_id=at, **columns)]


def sync(start_us: int, us: int) -> Row:
    return launch(start_us * US, us * US, kind="sync", name="cudaDeviceSynchronize")


def found(
    low: int | None,
    high: int | None,
    ids: tuple[int, ...],
    *,
    acts_on: str = "device",
    host_high: int = 0,
    rank: int = 0,
) -> Found:
    finding = Finding(
        id=f"mine-{ids}",
        analyzer="mine",
        severity="warning",
        title="",
        message="",
        advice="",
        rank=rank,
        saving_low_ns=low,
        saving_high_ns=high,
        saving_basis="basis",
        event_ids=ids,
    )
    return Found(finding, acts_on, 0, host_high)


# ---- one finding ----------------------------------------------------------

DEVICE_BOUND = [*launched(0, 5, 100, 0), *launched(10, 105, 100, 2), sync(20, 190)]
HOST_BOUND = [*launched(0, 5, 20, 0), *launched(100, 105, 20, 2), *launched(200, 205, 20, 4)]


def test_a_step_bound_by_its_device_gains_all_of_it(open_trace: OpenTrace) -> None:
    given = found(10 * US, 40 * US, (1, 3))
    (finding,), _ = of_the_step(open_trace(DEVICE_BOUND), [given])
    assert finding == replace(
        given.finding, saving_likely_ns=25 * US
    )  # halfway, if nothing is said


def test_a_saving_is_expected_where_its_analyzer_says(open_trace: OpenTrace) -> None:
    given = replace(found(10 * US, 50 * US, (1, 3)), likely=0.75)
    (finding,), _ = of_the_step(open_trace(DEVICE_BOUND), [given])
    assert finding.saving_likely_ns == 40 * US


def test_a_step_bound_by_its_host_gains_only_what_the_host_is_spared(
    open_trace: OpenTrace,
) -> None:
    trace = open_trace(HOST_BOUND)
    given = [found(5 * US, 9 * US, (1, 3)), found(5 * US, 9 * US, (1, 3), host_high=30 * US)]
    (kernels, launches), (combined,) = of_the_step(trace, given)
    assert (kernels.saving_low_ns, kernels.saving_high_ns) == (0, 0)
    assert kernels.severity == "info"
    assert "100% of this work hides behind the host, it gains nothing" in kernels.saving_basis
    assert kernels.evidence["device_saving_high_ns"] == 9 * US
    assert (launches.saving_low_ns, launches.saving_high_ns) == (0, 30 * US)
    assert "launches and host time that go count there" in launches.saving_basis
    assert (combined.low_ns, combined.high_ns) == (0, 30 * US)


def test_without_launches_the_low_is_nothing(open_trace: OpenTrace) -> None:
    (finding,), _ = of_the_step(open_trace([kernel(0, 100 * US)]), [found(5 * US, 9 * US, (0,))])
    assert (finding.saving_low_ns, finding.saving_high_ns) == (0, 9 * US)
    assert "unknown" in finding.saving_basis


def test_work_beside_other_work_is_no_sure_gain(open_trace: OpenTrace) -> None:
    beside = kernel(5 * US, 60 * US, queue="stream 9", name="other", launch_id=0)
    rows = [*launched(0, 5, 100, 0), beside, sync(10, 95)]
    (finding,), _ = of_the_step(open_trace(rows), [found(50 * US, 50 * US, (1,))])
    assert (finding.saving_low_ns, finding.saving_high_ns) == (20 * US, 50 * US)
    assert "during 60% of it other work of the device ran" in finding.saving_basis


def test_a_capture_that_slows_the_host_leaves_the_high(open_trace: OpenTrace) -> None:
    frame = {"layer": "python", "kind": "frame", "start_ns": 0, "duration_ns": 9, "name": "f"}
    (finding,), _ = of_the_step(open_trace([*HOST_BOUND, frame]), [found(5 * US, 9 * US, (1, 3))])
    assert (finding.saving_low_ns, finding.saving_high_ns) == (0, 9 * US)


# ---- all of them ----------------------------------------------------------

KERNELS = 8
KERNEL_NS, IDLE_NS = 50 * US, 10 * US


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Kernels of 50 us with gaps of 10 us between, which no launch explains, in one step."""
    whole = KERNELS * (KERNEL_NS + IDLE_NS)
    rows: list[Row] = [step(0, 0, whole)]
    for place in range(KERNELS):
        start = place * (KERNEL_NS + IDLE_NS)
        rows.append(launch(0, 2 * US, step=0))
        rows.append(kernel(start, KERNEL_NS, launch_id=2 * place + 1, step=0))
    return Trace.open([write_trace(tmp_path_factory.mktemp("eight") / "t.parquet", rows)])


def together(trace: Trace, given: list[Found]) -> Combined:
    _, (combined,) = of_the_step(trace, given)
    return combined


def test_findings_on_the_same_events_are_not_added(eight: Trace) -> None:
    same = [found(10 * US, 40 * US, (2, 4)), found(20 * US, 30 * US, (2, 4))]
    assert together(eight, same).high_ns == 40 * US
    assert together(eight, same).low_ns == 20 * US


def test_independent_findings_add(eight: Trace) -> None:
    apart = [found(10 * US, 40 * US, (2, 4)), found(20 * US, 30 * US, (6,))]
    both = together(eight, apart)
    assert (both.low_ns, both.high_ns) == (30 * US, 70 * US)
    assert both.span_ns == KERNELS * (KERNEL_NS + IDLE_NS)


def test_idle_time_before_the_work_is_apart_from_the_work(eight: Trace) -> None:
    gaps = found(0, 10 * US, (4,), acts_on="gaps")
    assert together(eight, [gaps, found(0, 40 * US, (4,))]).high_ns == 50 * US
    stretch = found(0, 60 * US, (4,), acts_on="stretch")
    assert together(eight, [gaps, stretch]).high_ns == 60 * US


def test_savings_of_minutes_do_not_overflow(open_trace: OpenTrace) -> None:
    long = 200_000_000 * US
    trace = open_trace([step(0, 0, long), *launched(0, 5, 150_000_000, 1)])
    assert together(trace, [found(0, long // 2, (2,))]).high_ns == long // 2


def test_unknown_savings_are_counted_and_in_no_bound(eight: Trace) -> None:
    both = together(eight, [found(0, 40 * US, (2,)), found(None, None, (4,))])
    assert (both.high_ns, both.findings, both.unknown) == (40 * US, 1, 1)


IDS = st.lists(
    st.sampled_from([2 * place + 2 for place in range(KERNELS)]), min_size=1, unique=True
)


@st.composite
def findings(draw: st.DrawFn) -> Found:
    ids = tuple(sorted(draw(IDS)))
    acts_on = draw(st.sampled_from(["device", "gaps", "stretch", "events"]))
    high = draw(st.integers(1, len(ids) * (IDLE_NS if acts_on == "gaps" else KERNEL_NS)))
    return found(draw(st.integers(0, high)), high, ids, acts_on=acts_on)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(findings(), min_size=1, max_size=5))
def test_the_bound_lies_between_the_largest_and_the_sum(eight: Trace, given: list[Found]) -> None:
    paced, (combined,) = of_the_step(eight, given)
    highs = [finding.saving_high_ns or 0 for finding in paced]
    assert max(highs) <= combined.high_ns <= sum(highs)
    assert combined.high_ns <= (combined.span_ns or 0)
    assert max(f.saving_low_ns or 0 for f in paced) <= combined.low_ns <= combined.high_ns


def test_ranks_save_side_by_side(tmp_path: Path) -> None:
    paths = []
    for rank in (0, 1):
        rows = [dict(each) | {"rank": rank} for each in DEVICE_BOUND]
        metadata = {"summary": {"rank": rank}}
        paths.append(write_trace(tmp_path / f"rank={rank}.parquet", rows, metadata))
    with Trace.open(paths) as trace:
        given = [found(9 * US, 40 * US, (1,), rank=0), found(5 * US, 30 * US, (1,), rank=1)]
        combined = together(trace, given)
    assert (combined.low_ns, combined.high_ns) == (5 * US, 40 * US)


def test_the_report_has_it(open_trace: OpenTrace) -> None:
    rows = [
        step(0, 0, 1_000 * US),
        op(0, 1_000 * US, name="aten::mm", family="matmul", step=0),
        {
            "layer": "host", "kind": "gc", "start_ns": 0, "duration_ns": 400 * US,
            "name": "gc generation 2", "pid": 1, "tid": 1,
        },
    ]  # fmt: skip
    report = run(open_trace(rows), only=["collector_pauses"])
    (combined,) = report.combined
    assert (combined.low_ns, combined.high_ns, combined.share) == (0, 400 * US, 0.4)
