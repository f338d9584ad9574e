"""What outlives a session, and what must not: broken files, endless lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuron_explorer.tui import kept
from neuron_explorer.tui.kept import Kept, Mark, state_path
from neuron_explorer.tui.state import EventKey, Spot


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_next_session_finds_what_the_last_one_left() -> None:
    first = Kept.of_user()
    mark = Mark("source", "核 \x1b[2J", Spot("/a b/model.py", 12), EventKey(1, 99))
    first.remember_light(light=True)
    first.remember_query("SELECT 1")
    first.change_marks(["t.parquet"], [mark, Mark("ops", "mm", None, None)])
    second = Kept.of_user()
    assert second.light
    assert second.queries == ["SELECT 1"]
    assert second.marks_of(["t.parquet"]) == [mark, Mark("ops", "mm", None, None)]
    assert second.marks_of([str(Path("t.parquet").absolute())])[0] == mark
    assert second.marks_of(["other.parquet"]) == []


def test_lists_are_bounded_and_say_each_query_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_QUERIES", 3)
    monkeypatch.setattr(kept, "MOST_MARKS", 2)
    monkeypatch.setattr(kept, "MOST_TRACES", 2)
    state = Kept.of_user()
    for query in ["a", "b", "c", "a", "d", " ", "x" * 100_000]:
        state.remember_query(query)
    marks = [Mark("ops", str(n), None, None) for n in range(4)]
    for trace in ("1", "2", "1", "3"):
        state.change_marks([trace], marks)
    again = Kept.of_user()
    assert again.queries == ["c", "a", "d"]
    assert [Path(trace).name for trace in again.marks] == ["1", "3"]
    assert again.marks_of(["3"]) == marks[2:]


@pytest.mark.parametrize(
    "broken", ["", "[]", "{", '{"marks": {"t": [["ops"]]}}', '{"queries": 5}', "\udcff"]
)
def test_a_broken_file_is_said_and_left_alone(broken: str) -> None:
    path = state_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(broken.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    state = Kept.of_user()
    assert "cannot be read, nothing is kept this time" in state.problem
    state.remember_query("SELECT 1")
    assert state.queries == ["SELECT 1"]
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    state = Kept.of_user()
    (tmp_path / "neuron_explorer").write_text("a file where the folder should be")
    state.remember_light(light=True)
    assert "nothing is kept for the next session" in state.problem
    assert state.light
