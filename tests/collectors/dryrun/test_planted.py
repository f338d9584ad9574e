"""Ten scripts with planted mistakes: each is counted exactly, at its line.

A mark is `# fallback, sync *2` at the end of a line: how often it happens there in all. What is
not marked must not be found.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from dryrun_scripts import run_script

from neuron_explorer import load

PLANTED = Path(__file__).parent / "planted"
NAMES = sorted(path.stem for path in PLANTED.glob("*.py"))
_MARK = re.compile(r"(fallback|recompile|sync|graph break)(?: \*(\d+))?")

FOUND = """
SELECT 'fallback' AS what, source_file, source_line, count FROM fallbacks
UNION ALL
SELECT replace(kind, '_', ' '), source_file, source_line, count(*)
FROM compilations WHERE kind IN ('recompile', 'graph_break') AND in_window
GROUP BY ALL
UNION ALL
SELECT 'sync', source_file, source_line, count(*)
FROM events WHERE layer = 'runtime' AND kind = 'sync' GROUP BY ALL
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("planted")
    assert run_script("planted.py", PLANTED, folder) == NAMES
    return folder


def marks(path: Path) -> Counter[tuple[str, int]]:
    found: Counter[tuple[str, int]] = Counter()
    for number, text in enumerate(path.read_text().splitlines(), 1):
        *_, comment = text.split("  # ") if "  # " in text else ("",)
        for what, times in _MARK.findall(comment):
            found[what, number] += int(times or 1)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_each_is_counted_at_its_line(traces: Path, name: str) -> None:
    script = PLANTED / f"{name}.py"
    found: Counter[tuple[str, int]] = Counter()
    for row in load(traces / f"{name}.parquet").sql(FOUND).to_pylist():
        assert row["source_file"] is not None, row
        assert Path(row["source_file"]).name == script.name, row
        found[row["what"], row["source_line"]] += row["count"]
    expected = marks(script)
    assert expected
    assert found == expected


def test_ten_scripts_plant_every_kind() -> None:
    assert len(NAMES) == 10
    kinds = Counter(what for name in NAMES for what, _ in marks(PLANTED / f"{name}.py"))
    assert set(kinds) == {"fallback", "recompile", "sync", "graph break"}
    assert min(kinds.values()) >= 3


def test_programs_of_ops_and_of_graphs_are_told_apart(traces: Path) -> None:
    asked = (
        "SELECT unit, count(*) AS count, count(graph_id) AS graphs FROM compilations "
        "WHERE unit IS NOT NULL GROUP BY ALL"
    )
    found = {row["unit"]: row for row in load(traces / "shapes.parquet").sql(asked).to_pylist()}
    assert found["graph"] == {"unit": "graph", "count": 3, "graphs": 3}
    assert found.keys() <= {"graph", "op"}
    found = {row["unit"]: row for row in load(traces / "batches.parquet").sql(asked).to_pylist()}
    assert set(found) == {"op"}
    assert found["op"]["graphs"] == 0
