"""What a chosen range of the timeline adds up to, against counting nanosecond by nanosecond."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import kernel, launch, op, write_trace
from neuron_explorer.trace import Trace
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.lane_range import RangeChoice
from neuron_explorer.tui.range_summary import lines, summary
from neuron_explorer.tui.timeline_data import Range, Span


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Kernels beside and over one another on two queues, ops inside ops, and launches."""
    rows: list[Any] = [
        kernel(7 * i % 83, 1 + i * i % 41, queue=f"stream {i % 2}") for i in range(14)
    ]
    rows += [op(3 * i, 30 - 2 * i) for i in range(6)] + [launch(8 * i, 5) for i in range(6)]
    path = write_trace(tmp_path_factory.mktemp("crowd") / "t.parquet", rows)
    with Trace.open([path]) as trace:
        yield Ask(trace)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(-5, 120), length=st.integers(1, 60))
def test_busy_time_is_that_of_every_nanosecond(crowd: Ask, start: int, length: int) -> None:
    chosen = Range(start, start + length)
    found = summary(crowd, chosen)
    spans = crowd.rows(
        "SELECT s.*, l.track, l.place FROM spans AS s INNER JOIN lanes AS l USING (lane)"
    )
    seen = [s for s in spans if s["start_ns"] < chosen.end_ns and s["end_ns"] > chosen.start_ns]

    def covered(of: list[dict[str, Any]]) -> int:
        """Nanoseconds of each lane that at least one of these events covers."""
        inside = range(chosen.start_ns, chosen.end_ns)
        return sum(
            any(s["lane"] == lane and s["start_ns"] <= at < s["end_ns"] for s in of)
            for lane in {s["lane"] for s in of}
            for at in inside
        )

    work = [s for s in seen if s["track"] == "work"]
    host = [s for s in seen if s["track"] != "work"]
    assert {row["place"]: (row["events"], row["busy_ns"]) for row in found.queues} == {
        place: (len(of), covered(of))
        for place in {s["place"] for s in work}
        if (of := [s for s in work if s["place"] == place])
    }
    for told, events in ((found.bounds, work), (found.calls, host)):
        assert told == {
            mark: (len(of), covered(of))
            for mark in {s["mark"] for s in events}
            if (of := [s for s in events if s["mark"] == mark])
        }


def test_it_is_said_in_four_lines_of_any_width(crowd: Ask) -> None:
    found = summary(crowd, Range(0, 80))
    said = [
        "".join(p if isinstance(p, str) else p[0] for p in line) for line in lines(found, 0, 90)
    ]
    assert "range 80 ns from 0 ns on" in said[0]
    assert "stream 0 " in said[1]
    assert "% busy, 7 events" in said[1]
    assert "unknown" in said[2]
    assert " op 35 ns in 6" in said[3]
    narrow = lines(found, 0, 40)
    assert list(narrow[1][-1:]) == [("+1", "dim")]
    assert "no work" in str(lines(summary(crowd, Range(400, 410)), 0, 90)[1])


def test_a_range_grows_from_its_first_event_until_it_is_ended() -> None:
    def span(start: int, end: int) -> Span:
        return Span(0, 1, start, start, end, "k", "compute")

    choice = RangeChoice()
    assert not choice.reach(span(0, 5))
    assert choice.press(span(20, 30))
    assert choice.reach(span(50, 60))
    assert choice.range == Range(20, 60)
    assert choice.reach(span(2, 4))
    assert choice.range == Range(2, 30)
    assert not choice.press(span(2, 4))
    assert not choice.reach(span(90, 99))
    choice.grab(70)
    assert not choice.drag(70)
    assert not choice.dragged()
    assert choice.drag(40)
    choice.drop()
    assert choice.dragged()
    assert choice.range == Range(40, 70)
    assert choice.clear()
    assert not choice.clear()
