"""The device's own log and `trace.parquet` are the same, event by event."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest
from dryrun_scripts import SCRIPTS, run_script

from neuron_explorer import Trace, load

STEPS = 3
SHORT = {"in": "copy host to device", "out": "copy device to host"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, dict[str, Any]]:
    pytest.importorskip("torch")

    path = tmp_path_factory.mktemp("recorded") / "t.parquet"
    log = run_script("labelled.py", path)
    return load(path), log


Recorded = tuple[Trace, dict[str, Any]]


def rows(trace: Trace, query: str) -> list[dict[str, Any]]:
    return list(trace.sql(query).to_pylist())


def test_every_event_is_there_with_its_times(recorded: Recorded) -> None:
    trace, log = recorded
    found = rows(
        trace,
        "SELECT queue, name, start_ns, duration_ns, modelled_start_ns, modelled_duration_ns "
        "FROM events WHERE layer = 'hardware' ORDER BY queue, start_ns",
    )
    window = [e for e in log["events"] if e["modelled_start_ns"] >= found_start(found)]
    window.sort(key=lambda e: (e["queue"], e["start_ns"]))
    assert len(window) == len(found) > 20 * STEPS
    offset = found[0]["start_ns"] - window[0]["start_ns"]  # between the two clocks
    for ours, theirs in zip(found, window, strict=True):
        assert ours["name"] == theirs["name"]
        assert ours["queue"] == theirs["queue"]
        assert ours["modelled_start_ns"] == theirs["modelled_start_ns"]
        assert ours["modelled_duration_ns"] == theirs["modelled_duration_ns"]
        assert abs(ours["duration_ns"] - (theirs["end_ns"] - theirs["start_ns"])) <= 1
        assert abs(ours["start_ns"] - theirs["start_ns"] - offset) <= 1


def found_start(found: list[dict[str, Any]]) -> int:
    return int(min(row["modelled_start_ns"] for row in found))


def test_every_event_has_launch_op_and_line(recorded: Recorded) -> None:
    trace, log = recorded
    bare = "op_id IS NULL OR launch_id IS NULL OR source_line IS NULL"
    assert rows(trace, f"SELECT name FROM events WHERE layer = 'hardware' AND ({bare})") == []
    tied = rows(
        trace,
        "SELECT h.name, l.kind FROM events AS h INNER JOIN events AS l ON h.launch_id = l.event_id "
        "WHERE h.layer = 'hardware'",
    )
    assert Counter(row["kind"] for row in tied) == Counter(
        "copy" if row["name"].startswith("copy ") else "launch" for row in tied
    )
    submitted = rows(trace, "SELECT kind FROM events WHERE layer = 'runtime' AND kind <> 'sync'")
    assert len(submitted) == len(tied)
    assert len(log["launches"]) >= len(submitted)


def test_lines_are_those_of_the_marks(recorded: Recorded) -> None:
    trace, _ = recorded
    marks = {}
    for number, text in enumerate((SCRIPTS / "labelled.py").read_text().splitlines(), 1):
        if found := re.search(r"# queue: (.*)$", text):
            marks[number] = Counter(SHORT.get(name, name) for name in found[1].split())
    ran: dict[int, Counter[str]] = defaultdict(Counter)
    for row in rows(
        trace,
        "SELECT name, source_file, source_line FROM events "
        "WHERE layer = 'hardware' AND phase = 'forward'",
    ):
        assert row["source_file"].endswith("labelled.py")
        ran[row["source_line"]][row["name"]] += 1
    assert len(marks) >= 9
    expected = {line: Counter({n: STEPS * c for n, c in m.items()}) for line, m in marks.items()}
    assert dict(ran) == expected


def test_accumulated_gradients_are_of_the_line_that_asks_for_them(recorded: Recorded) -> None:
    trace, _ = recorded
    lines = (SCRIPTS / "labelled.py").read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if text.endswith("# accumulated"))
    found = rows(
        trace,
        "SELECT name, source_line, user_line, phase FROM events WHERE layer = 'hardware' "
        "AND name = 'aten::add_' AND phase = 'backward'",
    )
    # two weights and a bias, once a step: the first backward finds no gradient
    assert len(found) == 3 * STEPS
    assert {(row["source_line"], row["user_line"]) for row in found} == {(line, line)}


def test_busy_time_and_gaps_are_those_of_the_log(recorded: Recorded) -> None:
    trace, log = recorded
    start = int(rows(trace, "SELECT min(modelled_start_ns) AS t FROM events")[0]["t"])
    window = [e for e in log["events"] if e["modelled_start_ns"] >= start]
    queues = {row["queue"]: row for row in rows(trace, "SELECT * FROM queues")}
    assert set(queues) == {event["queue"] for event in window}
    for name, row in queues.items():
        mine = [(e["start_ns"], e["end_ns"]) for e in window if e["queue"] == name]
        slack = len(mine)  # a nanosecond of rounding each
        assert row["events"] == len(mine)
        assert abs(row["busy_ns"] - sum(b - a for a, b in union(mine))) <= slack
        span = max(b for _, b in mine) - min(a for a, _ in mine)
        assert abs(row["span_ns"] - span) <= slack
    whole = union([(e["start_ns"], e["end_ns"]) for e in window])
    ours = sorted(b[0] - a[1] for a, b in pairwise(whole))
    theirs = sorted(row["duration_ns"] for row in rows(trace, "SELECT duration_ns FROM gaps"))
    assert abs(sum(ours) - sum(theirs)) <= len(window)
    assert len(theirs) == pytest.approx(len(ours), abs=2)


def union(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Intervals that touch become one."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def test_fallbacks_are_in_their_view(recorded: Recorded) -> None:
    trace, _ = recorded
    (row,) = rows(trace, "SELECT op_name, count, copied_bytes, source_line FROM fallbacks")
    line = next(
        number
        for number, text in enumerate((SCRIPTS / "labelled.py").read_text().splitlines(), 1)
        if "torch.sort" in text
    )
    # 4x8 fp32 out; values and 64-bit indices, kept in 32 bits, in
    assert row == {
        "op_name": "aten::sort",
        "count": STEPS,
        "copied_bytes": STEPS * 3 * 128,
        "source_line": line,
    }
