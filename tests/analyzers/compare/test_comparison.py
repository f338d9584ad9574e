"""Comparisons of traces whose every time is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from step_traces import FILE, Call, Times, made

from builders import kernel, op, step, write_trace
from neuron_explorer.analyzers.compare import Comparison, Row, Verdict, compare
from neuron_explorer.analyzers.runner import Report
from neuron_explorer.trace import Trace

NAMES = ("mm", "add", "tanh", "sum", "div", "exp")
CALLS = [Call(line, name) for line, name in enumerate(NAMES, 10)]
TEXTS = {call.line: f"x = torch.{call.name}(x)" for call in CALLS}
NOTHING = Report([], [], [], {})
"""Analyzers have tests of their own, and take their time."""


def steps(
    count: int = 12,
    *,
    seed: int = 0,
    noise: float = 0.02,
    factors: Mapping[int, float] | None = None,
    calls: list[Call] | None = None,
) -> list[Times]:
    """Steps in which each call takes 500 us, some more in each step, times the line's factor."""
    generator = np.random.default_rng(seed)
    return [
        {
            call: round(
                500 * (factors or {}).get(call.line, 1.0) * (1 + generator.exponential(noise))
            )
            for call in calls or CALLS
        }
        for _ in range(count)
    ]


def compared(base: Trace, new: Path) -> Comparison:
    with opened(new) as after:
        return compare(base, after, (NOTHING, NOTHING))


def opened(path: Path) -> Trace:
    return Trace.open(sorted(path.glob("*")) if path.is_dir() else [path])


def both(base: Path, new: Path) -> Comparison:
    with opened(base) as before:
        return compared(before, new)


@pytest.fixture(scope="module")
def itself(base: Trace) -> Comparison:
    """Nothing can be more equal."""
    return compare(base, base, (NOTHING, NOTHING))


def line(comparison: Comparison, text: str) -> Row:
    (row,) = [r for r in comparison.of_kind("line") if r.pair and r.pair.latest.text == text]
    return row


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    with opened(made(tmp_path_factory.mktemp("base") / "t.parquet", steps(), TEXTS)) as trace:
        yield trace


def test_equal_programs_have_no_change(base: Trace, tmp_path: Path) -> None:
    seen = compared(base, made(tmp_path / "t.parquet", steps(seed=1), TEXTS))
    assert not seen.changed
    assert seen.step.verdict is Verdict.SAME
    assert seen.step.program_ns == 0


def test_one_line_that_takes_longer_is_the_only_line_that_changed(
    base: Trace, tmp_path: Path
) -> None:
    """By 60 %, which is 10 % of the step, with the same code and work as before."""
    with opened(made(tmp_path / "t.parquet", steps(seed=1, factors={12: 1.6}), TEXTS)) as slower:
        there = compare(base, slower, (NOTHING, NOTHING))
        back = compare(slower, base, (NOTHING, NOTHING))
    (changed,) = [row for row in there.of_kind("line") if row.changed]
    assert changed.pair is not None
    assert changed.pair.latest.number == 12
    assert changed.verdict is there.step.verdict is Verdict.WORSE
    assert not changed.explained
    assert there.step.program_share == pytest.approx(0.1, abs=0.01)
    assert line(back, TEXTS[12]).verdict is back.step.verdict is Verdict.BETTER
    assert back.step.program_share == pytest.approx(-0.1 / 1.1, abs=0.01)


@pytest.mark.parametrize("written", [None, 1 << 18])
def test_pages_that_are_fresh_in_one_capture_only_are_no_change(
    written: int | None, tmp_path: Path
) -> None:
    """An allocator's doing, the same in each step; where nobody knows of bytes it is a change."""
    calls = [Call(c.line, c.name, write_bytes=written) if c.line == 12 else c for c in CALLS]
    factors = ({12: 0.6}, {12: 1.0})
    before, after = (
        made(tmp_path / f"{n}.parquet", steps(seed=n, factors=each, calls=calls), TEXTS)
        for n, each in enumerate(factors)
    )
    assert both(before, after).changed is (written is None)
    # what somebody has edited counts nevertheless
    edited = made(
        tmp_path / "e.parquet", steps(seed=3, calls=calls), TEXTS | {12: "x = torch.tanh(x) + 0"}
    )
    assert line(both(before, edited), "x = torch.tanh(x) + 0").verdict is Verdict.WORSE


def test_beside_a_device_what_ops_write_is_no_memory_of_the_host(tmp_path: Path) -> None:
    calls = [Call(c.line, c.name, write_bytes=1 << 30) for c in CALLS]
    before, after = (
        made(
            tmp_path / f"{n}.parquet",
            steps(seed=n, factors=each, calls=calls),
            TEXTS,
            device=True,
        )
        for n, each in enumerate(({}, {12: 2.0}))
    )
    assert line(both(before, after), TEXTS[12]).verdict is Verdict.WORSE


def test_a_slower_machine_is_no_change_of_the_program(base: Trace, tmp_path: Path) -> None:
    slow = dict.fromkeys(TEXTS, 1.8)
    seen = compared(base, made(tmp_path / "t.parquet", steps(seed=1, factors=slow), TEXTS))
    assert not seen.changed
    assert seen.machines["host"].ratio == pytest.approx(1.8, rel=0.02)
    assert seen.step.machine_ns == pytest.approx(0.8 * 6 * 500_000, rel=0.05)


def test_a_change_shows_on_a_slower_machine_too(base: Trace, tmp_path: Path) -> None:
    slow = dict.fromkeys(TEXTS, 1.8) | {12: 1.8 * 2}
    seen = compared(base, made(tmp_path / "t.parquet", steps(seed=1, factors=slow), TEXTS))
    (changed,) = [row for row in seen.of_kind("line") if row.changed]
    assert changed.delta_ns == pytest.approx(500_000, rel=0.05)


def test_the_number_of_steps_does_not_matter(base: Trace, tmp_path: Path) -> None:
    seen = compared(base, made(tmp_path / "t.parquet", steps(37, seed=1), TEXTS))
    assert not seen.changed
    assert (seen.base.steps, seen.new.steps) == (12, 37)


def test_a_first_step_that_warms_up_decides_nothing(base: Trace, tmp_path: Path) -> None:
    warm = steps(seed=1)
    warm[0] = dict.fromkeys(warm[0], 9_000) | {Call(20, "empty"): 80_000}
    seen = compared(base, made(tmp_path / "t.parquet", warm, TEXTS | {20: "self.cache = table()"}))
    assert not seen.changed


def test_an_interruption_in_every_step_decides_nothing(base: Trace, tmp_path: Path) -> None:
    """It hits another op each time: every step is longer, no part of it is."""
    hit = steps(seed=1)
    for number, times in enumerate(hit):
        late = CALLS[number % len(CALLS)]
        hit[number] = {**times, late: times[late] + 2_000}
    seen = compared(base, made(tmp_path / "t.parquet", hit, TEXTS))
    assert not seen.changed
    assert seen.step.new_ns - seen.step.base_ns > 1_900_000
    assert seen.step.rest_ns == pytest.approx(2_000_000, rel=0.1)


@pytest.mark.parametrize(("tail_us", "changed"), [(369, False), (1_500, True)])
def test_what_ends_a_step_is_the_recorders_up_to_half_a_millisecond(
    tail_us: int, tmp_path: Path, *, changed: bool
) -> None:
    before, after = (
        made(tmp_path / f"{us}.parquet", steps(), TEXTS, tail_us=us) for us in (140, tail_us)
    )
    seen = both(before, after)
    (rest,) = seen.of_kind("rest")
    assert rest.delta_ns == pytest.approx((tail_us - 140) * 1_000)
    assert rest.changed is seen.changed is changed


def test_new_gone_and_edited_lines(base: Trace, tmp_path: Path) -> None:
    calls = [*CALLS[:2], Call(12, "gelu"), *CALLS[4:], Call(17, "cumsum")]
    texts = TEXTS | {12: "x = torch.tan(x)", 17: "x = x.cumsum(0)"}
    del texts[13]
    seen = compared(base, made(tmp_path / "t.parquet", steps(seed=1, calls=calls), texts))
    found = {r.pair.latest.text: (r.verdict, r.pair.edited) for r in seen.of_kind("line") if r.pair}
    assert found["x = x.cumsum(0)"] == (Verdict.NEW, True)
    assert found["x = torch.sum(x)"] == (Verdict.GONE, True)
    assert found["x = torch.tan(x)"] == (Verdict.SAME, True)
    assert found["x = torch.mm(x)"] == (Verdict.SAME, False)
    ops = {row.name: row.verdict for row in seen.of_kind("op") if row.changed}
    assert ops == {
        "gelu": Verdict.NEW,
        "cumsum": Verdict.NEW,
        "tanh": Verdict.GONE,
        "sum": Verdict.GONE,
    }


def test_lines_that_moved_to_another_folder_are_the_same(base: Trace, tmp_path: Path) -> None:
    file = "/tmp/job-77/model.py"
    calls = [Call(c.line + 40, c.name, file=file) for c in CALLS]
    texts = {number + 40: text for number, text in TEXTS.items()}
    new = made(tmp_path / "t.parquet", steps(seed=1, calls=calls), texts, file=file)
    assert not compared(base, new).changed


def test_other_shapes_are_other_ops_of_the_same_line(base: Trace, tmp_path: Path) -> None:
    calls = [Call(c.line, c.name, shapes="[[16,8]]") if c.line == 12 else c for c in CALLS]
    seen = compared(base, made(tmp_path / "t.parquet", steps(seed=1, calls=calls), TEXTS))
    assert line(seen, TEXTS[12]).explained
    assert {r.verdict for r in seen.of_kind("op") if r.name == "tanh"} == {
        Verdict.NEW,
        Verdict.GONE,
    }


def test_shapes_that_differ_in_every_step_are_one_op(tmp_path: Path) -> None:
    def growing(seed: int) -> list[Times]:
        return [
            {Call(c.line, c.name, shapes=f"[[{number}]]"): us for c, us in times.items()}
            for number, times in enumerate(steps(seed=seed))
        ]

    paths = [made(tmp_path / f"{s}.parquet", growing(s), TEXTS) for s in (1, 2)]
    seen = both(*paths)
    assert not seen.changed
    assert len(seen.of_kind("op")) == len(CALLS) + 2  # Python, and the ends of steps


def test_what_a_few_steps_run_counts_with_its_mean(base: Trace, tmp_path: Path) -> None:
    seldom = [
        {**times, **({Call(20, "eval"): 6_000} if number in {3, 7} else {})}
        for number, times in enumerate(steps(seed=1))
    ]
    seen = compared(base, made(tmp_path / "t.parquet", seldom, TEXTS | {20: "evaluate()"}))
    row = line(seen, "evaluate()")
    assert row.verdict is Verdict.NEW
    assert row.delta_ns == pytest.approx(2 * 6_000_000 / 12)


@pytest.mark.parametrize("count", [0, 1])
def test_without_steps_to_spread_nothing_is_judged(count: int, base: Trace, tmp_path: Path) -> None:
    if count:
        new = made(tmp_path / "t.parquet", steps(1, factors={12: 3.0}), TEXTS)
    else:
        rows = [op(0, 1_500_000, self_ns=1_500_000, source_file=FILE, source_line=12)]
        new = write_trace(tmp_path / "t.parquet", rows)
    seen = compared(base, new)
    assert seen.step.verdict is Verdict.UNKNOWN
    assert seen.step.program_ns is None
    assert any("what is noise is unknown" in note for note in seen.notes)
    judged = {row.verdict for row in seen.rows}
    assert judged <= {Verdict.UNKNOWN, Verdict.SAME, Verdict.NEW, Verdict.GONE}


def test_ranks_are_compared_by_a_step_of_a_rank(tmp_path: Path) -> None:
    two = made(tmp_path / "two", steps(), TEXTS, ranks=2)
    four = made(tmp_path / "four", steps(seed=1), TEXTS, ranks=4)
    seen = both(two, four)
    assert not seen.changed
    assert (seen.base.ranks, seen.new.ranks) == (2, 4)
    assert seen.step.new_ns == pytest.approx(seen.step.base_ns, rel=0.02)
    assert any("2 ranks before, 4 now" in note for note in seen.notes)


def test_a_device_has_its_own_times_and_queues(tmp_path: Path) -> None:
    before = made(tmp_path / "a.parquet", steps(), TEXTS, device=True)
    after = made(tmp_path / "b.parquet", steps(seed=1, factors={12: 2.0}), TEXTS, device=True)
    seen = both(before, after)
    row = line(seen, TEXTS[12])
    assert row.verdict is Verdict.WORSE
    assert row.times["device"].delta_ns == pytest.approx(500_000, rel=0.1)
    (queue,) = seen.of_kind("queue")
    assert queue.verdict is Verdict.WORSE
    assert queue.delta_ns == pytest.approx(500_000, rel=0.1)
    assert seen.step.program_share == pytest.approx(1 / 6, abs=0.03)
    known = {metric.name: metric for metric in seen.metrics}
    assert known["kernels"].base == known["kernels"].new == 6
    assert known["device_time"].verdict is Verdict.WORSE


def test_without_a_device_its_figures_are_unknown(itself: Comparison) -> None:
    known = {metric.name: metric for metric in itself.metrics}
    for name in ("device_time", "idle_share", "launches", "kernels"):
        assert (known[name].base, known[name].verdict) == (None, Verdict.UNKNOWN)
        assert "no device" in known[name].missing
    assert known["peak_memory"].base is None
    assert "profile_memory=True" in known["peak_memory"].missing


def test_lines_and_the_rest_add_up_to_the_step(itself: Comparison) -> None:
    seen = itself
    parts = [row for row in seen.rows if row.kind in {"line", "rest"}]
    total = sum(row.times["host"].base_ns for row in parts)
    assert total == pytest.approx(seen.step.base_ns, rel=0.03)


def test_python_edited_above_a_line_explains_what_it_takes(tmp_path: Path) -> None:
    """Python runs between two ops, so the time of a line that calls none is the next one's."""

    def with_python(us: int) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for number in range(12):
            at = number * 10_000_000
            rows.append({**step(number, at, 4_000_000 + us * 1000)})
            for place, call in enumerate(CALLS):
                start = at + place * 500_000 + (us * 1000 if call.line >= 13 else 0)
                rows.append(
                    {
                        **op(start, 500_000, name=call.name, self_ns=500_000, step=number),
                        "source_file": FILE,
                        "source_line": call.line if call.line < 13 else call.line + 1,
                        "source_function": "forward",
                    }
                )
        return rows

    texts = {n if n < 13 else n + 1: text for n, text in TEXTS.items()}
    paths = []
    for name, us, above in (("a", 100, "log(x)"), ("b", 900, "log_everything(x)")):
        told = {str(n): text for n, text in (texts | {13: above}).items()}
        paths.append(
            write_trace(
                tmp_path / f"{name}.parquet",
                with_python(us),
                {"sources": {FILE: {"sha256": "0", "lines": told}}},
            )
        )
    row = line(both(*paths), TEXTS[13])
    assert (row.verdict, row.explained) == (Verdict.WORSE, True)
    assert row.delta_ns == pytest.approx(800_000)
    assert row.pair is not None
    assert (row.pair.edited, row.pair.touched) == (False, True)


def test_a_queue_of_another_device_is_the_one_that_did_as_much(tmp_path: Path) -> None:
    def on(path: Path, device: str, queues: tuple[str, str], seed: int) -> Path:
        rows = []
        for number, times in enumerate(steps(seed=seed)):
            at = number * 10_000_000
            rows.append(step(number, at, 6_000_000))
            for place, us in enumerate(times.values()):
                rows.append(
                    kernel(
                        at + place * 900_000,
                        us * 1000,
                        device=device,
                        queue=queues[place % 3 == 0],
                        step=number,
                    )
                )
        return write_trace(path, rows)

    base = on(tmp_path / "a.parquet", "cuda:0", ("stream 7", "stream 20"), 0)
    new = on(tmp_path / "b.parquet", "cuda:2", ("stream 9", "stream 33"), 1)
    seen = both(base, new)
    assert {(row.name, row.detail): row.verdict for row in seen.of_kind("queue")} == {
        ("cuda:0", "stream 7"): Verdict.SAME,
        ("cuda:0", "stream 20"): Verdict.SAME,
    }


def test_on_a_machine_too_busy_only_what_somebody_edited_is_judged(
    base: Trace, tmp_path: Path
) -> None:
    """The same work takes from a third to three times as long."""
    wild = {10: 3.0, 11: 0.3, 12: 2.5, 13: 0.4, 14: 3.0, 15: 0.35}
    calls = [*CALLS, Call(17, "cumsum")]
    new = made(
        tmp_path / "t.parquet",
        steps(seed=1, factors=wild, calls=calls),
        TEXTS | {17: "x = x.cumsum(0)"},
    )
    seen = compared(base, new)
    assert [row.pair.latest.number for row in seen.of_kind("line") if row.changed and row.pair] == [
        17
    ]
    assert line(seen, TEXTS[12]).verdict is Verdict.UNKNOWN
    assert "the machine was too busy" in seen.unsteady
    assert any("too busy to judge what nobody has edited" in note for note in seen.notes)
