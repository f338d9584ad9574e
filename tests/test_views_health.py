"""The view `health`: which traces are unfit to be judged, and what each check says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import Row, kernel, launch, op, row, step, write_trace
from neuron_explorer.trace import Trace


def checks(
    folder: Path, rows: list[Row], metadata: dict[str, object] | None = None
) -> dict[str, dict[str, Any]]:
    trace = Trace.open([write_trace(folder / "t.parquet", rows, metadata)])
    return {row["check_name"]: row for row in trace.sql("SELECT * FROM health").to_pylist()}


def healthy() -> list[Row]:
    shaped = {"input_shapes": [[2]], "source_file": "a.py", "source_line": 1}
    return [
        op(0, 10, **shaped),
        launch(2, 3, op_id=0),
        kernel(9, 8, op_id=0, launch_id=1, read_bytes=8, write_bytes=8),
    ]


def test_good_trace_is_ok_throughout(tmp_path: Path) -> None:
    found = checks(tmp_path, healthy())
    assert {check["status"] for check in found.values()} == {"ok"}
    assert {check["message"] for check in found.values()} == {""}


def test_no_events_is_bad_and_the_rank_is_that_of_the_file(tmp_path: Path) -> None:
    found = checks(tmp_path, [], {"summary": {"rank": 5}})
    assert (found["events"]["status"], found["events"]["rank"]) == ("bad", 5)


def test_pseudo_rows_are_no_events(tmp_path: Path) -> None:
    assert checks(tmp_path, [row("meta", "marker", 0, 0)])["events"]["status"] == "bad"


def test_truncated_file_is_bad(tmp_path: Path) -> None:
    found = checks(tmp_path, healthy(), {"origin": {"truncated": True}})
    assert found["truncated"]["status"] == "bad"


@pytest.mark.parametrize(("good", "status"), [(500, "warn"), (50, "bad")])
def test_share_of_unreadable_events(tmp_path: Path, good: int, status: str) -> None:
    rows = [kernel(i, 1) for i in range(good)] + [row("meta", "unreadable", None, None)]
    assert checks(tmp_path, rows)["unreadable"]["status"] == status


def test_events_that_the_profiler_dropped_are_told(tmp_path: Path) -> None:
    found = checks(tmp_path, healthy(), {"dropped": {"runtime": 7}})["dropped"]
    assert found["status"] == "warn"
    assert found["message"].endswith("reports events dropped or errors: runtime:7")


def test_launches_without_any_device_event_are_bad(tmp_path: Path) -> None:
    found = checks(tmp_path, [op(0, 10), launch(2, 3, op_id=0)])["device_events"]
    assert found["status"] == "bad"
    assert "1 launches" in found["message"]


def test_work_in_two_of_32_steps_is_bad(tmp_path: Path) -> None:
    rows = [
        *(step(number, number * 1000, 1000) for number in range(32)),
        kernel(3100, 10),
        kernel(17_005, 990),
    ]
    found = checks(tmp_path, rows)["worked_steps"]
    assert (found["status"], found["value"]) == ("bad", 2 / 32)
    assert "2 of 32 steps" in found["message"]


def test_few_steps_say_nothing(tmp_path: Path) -> None:
    rows = [step(0, 0, 10), step(1, 10, 10), step(2, 20, 10), kernel(1, 1)]
    assert checks(tmp_path, rows)["worked_steps"]["status"] == "ok"


def test_one_repaired_event_that_held_nearly_all_time_is_told(tmp_path: Path) -> None:
    rows = [
        kernel(0, 10),
        kernel(20, 15, raw_duration_ns=3_400_000),
        kernel(35, 10),
        kernel(50, 10),
    ]
    found = checks(tmp_path, rows)["raw_time"]
    assert found["status"] == "warn"
    assert "1 event = 99.9 % of raw time" in found["message"]


def test_what_is_not_recorded_names_the_option_that_gives_it(tmp_path: Path) -> None:
    found = checks(tmp_path, [op(0, 10), launch(2, 3, op_id=0), kernel(9, 8, launch_id=1)])
    assert "record_shapes=True" in found["shapes"]["message"]
    assert "record_shapes=True" in found["cost_coverage"]["message"]
    assert "with_stack=True" in found["sources"]["message"]
    assert {check["status"] for check in found.values()} == {"ok", "warn"}


def test_unlinked_device_events(tmp_path: Path) -> None:
    found = checks(tmp_path, [launch(0, 1), kernel(5, 5, launch_id=0), kernel(20, 5)])
    assert found["launch_links"]["status"] == "warn"
    assert "50.0 %" in found["launch_links"]["message"]
    (tmp_path / "deaf").mkdir()
    assert (
        "ProfilerActivity.CPU"
        in checks(tmp_path / "deaf", [kernel(5, 5)])["launch_links"]["message"]
    )


def test_names_that_the_exporter_lost(tmp_path: Path) -> None:
    lost = row("framework", "annotation", 0, 5, name="unknown")
    assert checks(tmp_path, [*healthy(), lost])["names"]["status"] == "ok"
    assert checks(tmp_path, [*healthy(), lost, lost])["names"]["status"] == "warn"


def test_cost_that_is_known_for_little_of_the_time(tmp_path: Path) -> None:
    rows = [*healthy(), kernel(100, 1000, launch_id=1)]
    assert checks(tmp_path, rows)["cost_coverage"]["status"] == "warn"
    collective = kernel(100, 1000, kind="collective", launch_id=1)
    assert checks(tmp_path, [*healthy(), collective])["cost_coverage"]["status"] == "ok"
