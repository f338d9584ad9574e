from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import kernel, launch, op, step, write_trace
from neuron_explorer.trace import Trace
from neuron_explorer.tui import timeline_data as data
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.state import EventKey
from neuron_explorer.tui.timeline_data import Span, Window, cells_in

COLUMNS = 7


def spans(ask: Ask) -> list[Span]:
    return [data.span_of(row) for row in ask.rows("SELECT * FROM spans ORDER BY event_id")]


def by_hand(found: list[Span], window: Window) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Events, busy time of the short ones, and who shows, by lane and column; the slow way."""
    cells: dict[tuple[int, int], tuple[int, int, int]] = {}
    for lane in {span.lane for span in found}:
        for column in range(window.columns):
            begin = window.start_ns + column * window.cell_ns
            end = begin + window.cell_ns
            seen = [s for s in found if s.lane == lane]
            seen = [s for s in seen if s.start_ns < window.end_ns and s.end_ns > window.start_ns]
            long = [s for s in seen if s.end_ns - s.start_ns >= window.cell_ns]
            touched = [s for s in long if s.start_ns < end and s.end_ns > begin]
            short = [s for s in seen if s not in long]
            short = [s for s in short if begin <= max(s.start_ns, window.start_ns) < end]
            if touched or short:
                busy = sum(s.end_ns - s.start_ns for s in short)
                inner = max(touched, key=lambda s: (s.start_ns, s.event_id), default=None)
                longest = max((s.end_ns - s.start_ns for s in short), default=0)
                shown = longest if inner is None or busy * 2 > window.cell_ns else -inner.event_id
                cells[lane, column] = (len(touched) + len(short), busy, shown)
    return cells


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Kernels of all lengths, side by side, inside one another and over one another."""
    rows = [kernel(7 * i % 83, 1 + i * i % 41, queue=f"stream {i % 2}") for i in range(24)]
    path = write_trace(tmp_path_factory.mktemp("crowd") / "t.parquet", rows)
    with Trace.open([path]) as trace:
        yield Ask(trace)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(-5, 120), cell=st.integers(1, 25))
def test_cells_are_what_counting_by_hand_gives(crowd: Ask, start: int, cell: int) -> None:
    window = Window(start, cell, COLUMNS)
    expected, found = by_hand(spans(crowd), window), cells_in(crowd, window, 1, 99)
    assert found.keys() == expected.keys()
    for place, drawn in found.items():
        events, busy, shown = expected[place]
        length = drawn.span.end_ns - drawn.span.start_ns
        assert (drawn.events, drawn.busy) == (events, busy / cell)
        assert shown in (length, -drawn.span.event_id)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """A step, two ops of one name, their launches and kernels, and a gap between those."""
    rows = [
        step(1, 0, 1_000),
        op(10, 100, name="aten::mul", parent_id=0),
        launch(20, 10, op_id=1, parent_id=1),
        kernel(100, 50, name="mul", op_id=1, launch_id=2),
        op(200, 100, name="aten::mul", parent_id=0),
        launch(220, 10, op_id=4, parent_id=4),
        kernel(400, 50, name="mul", op_id=4, launch_id=5),
    ]
    path = write_trace(tmp_path_factory.mktemp("chain") / "t.parquet", rows)
    with Trace.open([path]) as trace:
        yield Ask(trace)


def at(ask: Ask, event: int) -> Span:
    found = data.span(ask, EventKey(0, event))
    assert found is not None
    return found


def test_up_leads_from_a_kernel_to_its_launch_its_op_and_the_step(chain: Ask) -> None:
    walked, key = [], EventKey(0, 3)
    while (above := data.up(chain, key)) is not None:
        key = above.key
        walked.append(key.event_id)
    assert walked == [2, 1, 0]


def test_down_leads_to_the_work(chain: Ask) -> None:
    assert (below := data.down(chain, EventKey(0, 4))) is not None
    assert below.event_id == 6
    assert data.down(chain, EventKey(0, 6)) is None


def test_same_name_goes_both_ways_and_ends(chain: Ask) -> None:
    after = data.beside(chain, data.SAME_NAME, at(chain, 3), 1, "mul")
    assert after is not None
    assert after.event_id == 6
    before = data.beside(chain, data.SAME_NAME, after, -1, "mul")
    assert before is not None
    assert before.event_id == 3
    assert data.beside(chain, data.SAME_NAME, after, 1, "mul") is None


def test_a_search_finds_any_part_of_a_name(chain: Ask) -> None:
    found = data.beside(chain, data.CONTAINS, at(chain, 0), 1, "TEN::M")
    assert found is not None
    assert found.event_id == 1


def test_steps_and_gaps(chain: Ask) -> None:
    step_before = data.beside(chain, data.STEPS, at(chain, 3), -1)
    assert step_before is not None
    assert step_before.event_id == 0
    after_gap = data.gap(chain, at(chain, 3), 1, 100)
    assert after_gap is not None
    assert after_gap.event_id == 6
    assert data.gap(chain, at(chain, 3), 1, 100_000) is None


def test_details_name_op_and_launch(chain: Ask) -> None:
    found = data.details(chain, EventKey(0, 3))
    assert (found["op_name"], found["launch_name"]) == ("aten::mul", at(chain, 2).name)
