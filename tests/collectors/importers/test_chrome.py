"""How a Chrome trace is cut into documents: each byte of a whole file is parsed once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from neuron_explorer.collectors.events import EventBuffer
from neuron_explorer.collectors.importers.chrome import PIECE_BYTES, read_with
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.normalise import Normaliser
from neuron_explorer.collectors.importers.tables import TableReader
from neuron_explorer.progress import Silent

BESIDE = '"schemaVersion": 1, "traceName": "x"'


class Counting(Normaliser):
    """Keeps how many bytes it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    def table(self, documents: Sequence[bytes]) -> pa.Table | None:
        self.given += sum(map(len, documents))
        return super().table(documents)


def event(number: int, extra: str = "") -> str:
    text = json.dumps({"ph": "X", "name": f"op {number}", "ts": number, "dur": 1, "pid": 1})
    return text[:-1] + ', "args": {"note": "' + "x" * 400 + '"' + extra + "}}"


def trace(folder: Path, events: list[str]) -> Path:
    file = folder / "trace.json"
    file.write_text("{" + BESIDE + ', "traceEvents": [' + ",\n".join(events) + "]}")
    return file


def read(file: Path) -> tuple[int, Counting, IssueLog]:
    issues, normaliser = IssueLog(), Counting()
    found = read_with(
        file, issues, Silent(), lambda: TableReader(EventBuffer(), issues), lambda: normaliser
    )
    found.reader.close()
    assert found.header["schemaVersion"] == 1
    assert not found.truncated
    return found.reader.rows, normaliser, issues


def test_what_is_whole_is_parsed_once(tmp_path: Path) -> None:
    events = [event(n) for n in range(5 * PIECE_BYTES // 1000)]
    file = trace(tmp_path, events)
    rows, normaliser, issues = read(file)
    assert (rows, issues.records()) == (len(events), [])
    # the brackets of each document are added
    assert normaliser.given <= file.stat().st_size + 100


@pytest.mark.parametrize("word", ["NaN", "nan", "-Infinity", "inf", "-iNf"])
@pytest.mark.parametrize("last", [True, False])
def test_bare_words_are_repaired_wherever_they_stand(
    tmp_path: Path, word: str, *, last: bool
) -> None:
    events = [event(n, ', "info": "is nan: inf"') for n in range(20)]
    events[-1 if last else 3] = event(99, f', "value": {word}')
    rows, _, issues = read(trace(tmp_path, events))
    assert rows == len(events)
    assert [issue["count"] for issue in issues.records()] == [1]


def test_bare_words_in_a_text_are_left_alone(tmp_path: Path) -> None:
    rows, _, issues = read(trace(tmp_path, [event(n, ', "info": "a: nan"') for n in range(20)]))
    assert (rows, issues.records()) == (20, [])
