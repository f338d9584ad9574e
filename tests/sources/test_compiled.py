"""Compiled kernels against scripts whose lines say which operators they give to a kernel.

A mark stands at the end of a line, `# own: gelu gelu_backward; shared: add`: operators, named
as Inductor names kernels after them, that come from this line only, and such that come from
others as well. A kernel's name says its operators; so its lines must be all whose own ones it
has, and no others but those that share one. The names come from the operators' metadata, the
lines from the stacks of graph nodes: neither follows from the other.
"""

from __future__ import annotations

import re
import runpy
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.collectors.capture.session import profile  # noqa: E402

CASES = sorted((Path(__file__).parent / "cases_compiled").glob("*.py"))
_MARK = re.compile(r"# (?P<marks>(own|shared): .*)$")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

KERNELS = r"""
SELECT name, sources, source_line, source_via, graph_id, compiled, phase, read_bytes,
    json_extract_string(attributes, '$.aten_ops[*]') AS ops
FROM events
WHERE starts_with(attributes ->> '$.aten_ops[0]', 'aten::')
    AND layer = 'framework' AND kind = 'op'
ORDER BY start_ns
"""


@dataclass
class Truth:
    """Lines of a script by the operators they give."""

    own: dict[str, int] = field(default_factory=dict)
    shared: dict[str, set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, script: Path) -> Truth:
        found = cls()
        for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1):
            mark = _MARK.search(line)
            for part in mark["marks"].split(";") if mark else ():
                kind, _, ops = part.strip().partition(": ")
                for op in ops.split():
                    if kind == "own":
                        assert op not in found.own, f"{script.name}: {op} is of two lines"
                        found.own[op] = number
                    else:
                        found.shared.setdefault(op, set()).add(number)
        return found

    def needed(self, ops: set[str]) -> set[int]:
        return {self.own[op] for op in ops if op in self.own}

    def allowed(self, ops: set[str]) -> set[int]:
        return self.needed(ops).union(*(self.shared.get(op, set()) for op in ops))


@dataclass
class Judged:
    script: str
    kernel: str
    lines: set[int]
    needed: set[int]
    allowed: set[int]

    @property
    def right(self) -> bool:
        return bool(self.lines) and self.needed <= self.lines <= self.allowed

    @property
    def exact(self) -> bool:
        return self.needed == self.allowed


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
            with profile(output=folder / f"{script.stem}.parquet") as session:
                main()
            found[script.stem] = session.trace.sql(KERNELS).to_pylist()
    return found


def judged(recorded: dict[str, list[dict[str, Any]]]) -> list[Judged]:
    found = []
    for script in CASES:
        truth = Truth.of(script)
        for row in recorded[script.stem]:
            here = [s for s in row["sources"] or () if f"cases_compiled/{script.name}:" in s]
            lines = {int(source.rpartition(":")[2]) for source in here}
            # a line of another file is a false one
            lines |= {-1} if len(here) < len(row["sources"] or ()) else set()
            ops = {op.removeprefix("aten::") for op in row["ops"]}
            needed, allowed = truth.needed(ops), truth.allowed(ops)
            found.append(Judged(script.stem, row["name"], lines, needed, allowed))
    return found


def test_kernels_have_all_their_lines_and_no_other(
    recorded: dict[str, list[dict[str, Any]]],
) -> None:
    kernels = judged(recorded)
    wrong = [kernel for kernel in kernels if not kernel.right]
    assert len(kernels) >= 25
    assert sum(kernel.exact for kernel in kernels) >= len(kernels) / 3
    assert len(wrong) <= 0.05 * len(kernels), wrong


def test_every_marked_line_is_in_some_kernel(recorded: dict[str, list[dict[str, Any]]]) -> None:
    kernels = judged(recorded)
    for script in CASES:
        truth = Truth.of(script)
        marked = set(truth.own.values()).union(*truth.shared.values(), set())
        found = set().union(*(k.lines for k in kernels if k.script == script.stem))
        assert marked == found, script.name


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
    # a recompilation is a graph of its own
    assert len({row["graph_id"] for row in recorded["broken"]}) == 4
