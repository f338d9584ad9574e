"""What stays from one session to the next: colours, queries, bookmarks; in the state folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from neuron_explorer.errors import OutputError
from neuron_explorer.reports import console
from neuron_explorer.tui.state import EventKey, Spot

MOST_QUERIES = 200
MOST_MARKS = 100
"""Of one trace."""
MOST_TRACES = 50
_LONGEST_QUERY = 20_000
"""Characters; a longer one is not kept."""


class Mark(NamedTuple):
    """A place to come back to: what was selected on a screen."""

    screen: str
    label: str
    spot: Spot | None
    event: EventKey | None


@dataclass
class Kept:
    """Read once, written at each change. Without a path nothing outlives the session."""

    path: Path | None = None
    light: bool = False
    queries: list[str] = field(default_factory=list)
    """Those run in the SQL screen, the newest last, each once."""
    marks: dict[str, list[Mark]] = field(default_factory=dict)
    """Bookmarks by the absolute path of the trace."""
    problem: str = ""
    """Why nothing could be read or kept."""

    @classmethod
    def of_user(cls) -> Kept:
        """What the last session of this user left."""
        try:
            path = state_path()
        except RuntimeError as error:
            return cls(problem=f"nothing is kept for the next session: {error}")
        try:
            return cls._read(path, json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            # kept away from the broken file, which its owner may want to mend
            return cls(problem=f"{path} cannot be read, nothing is kept this time: {error}")

    def remember_query(self, query: str) -> None:
        if query.strip() and len(query) <= _LONGEST_QUERY:
            self.queries = [*(q for q in self.queries if q != query), query][-MOST_QUERIES:]
            self._write()

    def remember_light(self, *, light: bool) -> None:
        self.light = light
        self._write()

    def marks_of(self, files: Sequence[str]) -> list[Mark]:
        return list(self.marks.get(_name(files), ()))

    def change_marks(self, files: Sequence[str], marks: Sequence[Mark]) -> None:
        """Keep these for a trace; of more than MOST_TRACES the longest unchanged are forgotten."""
        self.marks.pop(_name(files), None)
        if marks:
            self.marks[_name(files)] = list(marks)[-MOST_MARKS:]
        self.marks = dict(list(self.marks.items())[-MOST_TRACES:])
        self._write()

    @classmethod
    def _read(cls, path: Path, told: dict[str, Any]) -> Kept:
        marks = {
            str(trace): [_mark(mark) for mark in found][-MOST_MARKS:]
            for trace, found in told.get("marks", {}).items()
        }
        queries = [str(query) for query in told.get("queries", [])][-MOST_QUERIES:]
        return cls(path, bool(told.get("light")), queries, marks)

    def _write(self) -> None:
        if self.path is None:
            return
        told = {"light": self.light, "queries": self.queries, "marks": self.marks}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            console.write_file(self.path, json.dumps(told, indent=1) + "\n")
        except (OSError, OutputError) as error:
            self.problem, self.path = f"nothing is kept for the next session: {error}", None


def state_path() -> Path:
    """Where this user's terminal interface keeps what outlives it."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "neuron_explorer" / "tui.json"


def _name(files: Sequence[str]) -> str:
    return "\n".join(str(Path(file).absolute()) for file in files)


def _mark(told: Sequence[Any]) -> Mark:
    screen, label, spot, event = told
    return Mark(
        str(screen),
        str(label),
        None if spot is None else Spot(str(spot[0]), int(spot[1])),
        None if event is None else EventKey(int(event[0]), int(event[1])),
    )
