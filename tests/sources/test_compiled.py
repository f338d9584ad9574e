"""Compiled kernels against scripts whose lines say which operators they give to a kernel.

A mark stands at the end of a line, `# own: gelu mm=8x16x32`: operators, named as Inductor names
kernels after them, that come from this line only. Matrix products are told apart by their sizes:
rows, inner size, columns. A kernel's name says its operators, so each kernel has exactly one
true set of lines. The names come from the operators' metadata, the lines from the stacks of
graph nodes: neither follows from the other.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.collectors.capture.session import profile  # noqa: E402

FOLDER = Path(__file__).parent / "cases_compiled"
CASES = sorted(FOLDER.glob("*.py"))
LIBRARY = sorted((FOLDER / "library").glob("*.py"))
_MARK = re.compile(r"# own: (?P<ops>.*)$")
_NUMBERS = {"scalar_tensor"}
"""A number among the nodes: no line computes it."""

Line = tuple[str, int]

pytestmark = [
    pytest.mark.deep,
    pytest.mark.torch,
    pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

KERNELS = r"""
SELECT name, sources, source_line, source_via, graph_id, compiled, phase, input_shapes,
    json_extract_string(attributes, '$.aten_ops[*]') AS ops
FROM events
WHERE starts_with(attributes ->> '$.aten_ops[0]', 'aten::')
    AND layer = 'framework' AND kind = 'op'
ORDER BY start_ns
"""


def truth_of(script: Path) -> dict[str, Line]:
    """The line of each operator that a script and the files it may import give to kernels."""
    found: dict[str, Line] = {}
    for file in (script, *LIBRARY):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            mark = _MARK.search(line)
            for op in mark["ops"].split() if mark else ():
                # a script's own marks hide those of what it does not import
                known = found.setdefault(op, (file.name, number))
                assert file in LIBRARY or known[1] == number, f"{script.name}: {op} is of two lines"
    return found


@dataclass
class Judged:
    script: str
    kernel: str
    lines: set[Line]
    true: set[Line]
    unmarked: set[str]
    """Operators that no line says it gives."""

    @classmethod
    def of(cls, script: Path, row: dict[str, Any]) -> Judged:
        marks, ops = truth_of(script), {_sized(op, row["input_shapes"]) for op in row["ops"]}
        ops = {op if op in marks else op.partition("=")[0] for op in ops} - _NUMBERS
        places = (source.rpartition(":") for source in row["sources"] or ())
        lines = {(Path(file).name, int(line)) for file, _, line in places}
        true = {marks[op] for op in ops if op in marks}
        return cls(script.stem, row["name"], lines, true, ops - marks.keys())


def _sized(op: str, input_shapes: str | None) -> str:
    """`mm=8x16x32`, where the rows of a kernel know the sizes of what it multiplies."""
    name = op.removeprefix("aten::")
    matrices = [shape for shape in json.loads(input_shapes or "[]") if len(shape) == 2]
    if name not in ("mm", "addmm") or len(matrices) < 2:
        return name
    return f"{name}={matrices[0][0]}x{matrices[0][1]}x{matrices[1][1]}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Kernels of each script, all compiled in one cache of their own."""
    folder = tmp_path_factory.mktemp("compiled")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "cache"))
        for script in CASES:
            torch._dynamo.reset()
            main = runpy.run_path(str(script), run_name="labelled")["main"]
            with profile(output=folder / f"{script.stem}.parquet", record_shapes=True) as session:
                main()
            found[script.stem] = session.trace.sql(KERNELS).to_pylist()
    return found


def judged(recorded: dict[str, list[dict[str, Any]]]) -> list[Judged]:
    return [Judged.of(script, row) for script in CASES for row in recorded[script.stem]]


def test_kernels_have_all_their_lines_and_no_other(
    recorded: dict[str, list[dict[str, Any]]],
) -> None:
    kernels = judged(recorded)
    assert len(kernels) >= 50
    assert [kernel for kernel in kernels if kernel.unmarked or not kernel.true] == []
    wrong = [kernel for kernel in kernels if kernel.lines != kernel.true]
    assert len(wrong) <= 0.05 * len(kernels), wrong


def test_every_marked_line_is_in_some_kernel(recorded: dict[str, list[dict[str, Any]]]) -> None:
    kernels = judged(recorded)
    found = {(kernel.script, *line) for kernel in kernels for line in kernel.lines}
    for script in CASES:
        own = {line for line in truth_of(script).values() if line[0] == script.name}
        assert {(script.stem, *line) for line in own} <= found, script.name
    imported = {line for line in truth_of(LIBRARY[0]).values() if line[0] == LIBRARY[0].name}
    assert imported <= {line[1:] for line in found}


def test_kernels_say_their_graph_and_how_their_line_is_known(
    recorded: dict[str, list[dict[str, Any]]],
) -> None:
    for row in (row for rows in recorded.values() for row in rows):
        assert row["source_via"] == "compiled"
        assert row["compiled"] is True
        assert re.fullmatch(r"\d+/\d+", row["graph_id"])
        assert row["sources"][0].endswith(f":{row['source_line']}")
    phases = {row["phase"] for row in recorded["layers"]}
    assert phases == {"forward", "backward"}
    # a recompilation is a graph of its own; open sizes need none
    assert len({row["graph_id"] for row in recorded["broken"]}) == 4
    assert len({row["graph_id"] for row in recorded["sizes"]}) == 1
