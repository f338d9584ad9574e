"""Scripts whose ops have their true line written beside them, and how well a trace agrees.

A mark is a comment at the end of a line, `# op: relu mul*2 MulBackward0`: each run of the
script runs `aten::relu` once, `aten::mul` twice there as an op that no other op called, and
one backward op of a forward op of that line. A name with `::` stands as it is, `...` for
whatever else a library runs there.
"""

from __future__ import annotations

import ast
import re
import runpy
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "sources" / "cases"
_MARK = re.compile(r"# op: (?P<ops>.*)$")
_BACKWARD = re.compile(r"Backward\d*$")

REST = "..."

OPS = r"""
SELECT e.name, e.source_file, e.source_line, e.source_function, e.source_via, e.phase
FROM events AS e
LEFT JOIN events AS p ON e.parent_id = p.event_id
WHERE e.layer = 'framework' AND (
    p.name IS NULL OR p.name NOT LIKE 'aten::%' OR regexp_matches(e.name, 'Backward\d*$')
)
"""


@dataclass(frozen=True)
class Label:
    """How many ops of one name run at one line."""

    name: str
    line: int
    function: str
    count: int


@dataclass
class Score:
    """Ops of labels, and how many of them a trace has right."""

    ops: int = 0
    lines: int = 0
    functions: int = 0
    dishonest: list[str] = field(default_factory=list)
    """Ops of the forward at a line that runs others, though the trace says it were exact."""
    missed: list[str] = field(default_factory=list)

    def __iadd__(self, other: Score) -> Score:
        self.ops += other.ops
        self.lines += other.lines
        self.functions += other.functions
        self.dishonest += other.dishonest
        self.missed += other.missed
        return self

    @property
    def line_share(self) -> float:
        return self.lines / self.ops

    @property
    def function_share(self) -> float:
        return self.functions / self.ops


def labels(script: Path) -> list[Label]:
    """All labels of a script."""
    text = script.read_text(encoding="utf-8")
    functions = _functions(ast.parse(text))
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        mark = _MARK.search(line)
        for word in mark["ops"].split() if mark else ():
            if word == REST:
                found.append(Label(REST, number, functions.get(number, "<module>"), 0))
                continue
            name, _, count = word.partition("*")
            plain = "::" in name or _BACKWARD.search(name) or name[0].isupper()
            full = name if plain else f"aten::{name}"
            found.append(Label(full, number, functions.get(number, "<module>"), int(count or 1)))
    return found


def _functions(tree: ast.Module) -> dict[int, str]:
    """Innermost named function of each line; lambdas and comprehensions belong to it."""
    found: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for line in range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1):
                found[line] = node.name
    return found


def execute(script: Path) -> None:
    """Run a script and its `main`, as its marks count it."""
    runpy.run_path(str(script), run_name="labelled")["main"]()


def score(script: Path, rows: list[dict[str, Any]]) -> Score:
    """Compare a trace's ops with a script's labels."""
    total = Score()
    ends = (f"cases/{script.name}", f"-{script.stem}>")
    here = [row for row in rows if (row["source_file"] or "").endswith(ends)]
    at_line = Counter((row["name"], row["source_line"]) for row in here)
    wanted = labels(script)
    in_function: Counter[tuple[str, str]] = Counter()
    for label in wanted:
        right = min(at_line[label.name, label.line], label.count)
        total.ops += label.count
        total.lines += right
        in_function[label.name, label.function] += label.count
        if right < label.count:
            total.missed.append(f"{script.name}:{label.line} {label.name} {right}/{label.count}")
    found = Counter((row["name"], _named(row, script)) for row in here)
    total.functions = sum(min(found[key], count) for key, count in in_function.items())
    total.dishonest = _dishonest(script, wanted, here)
    return total


def _named(row: dict[str, Any], script: Path) -> str:
    """Function of a row, or the one that its lambda or comprehension stands in."""
    function: str = row["source_function"]
    if not function.startswith("<") or function == "<module>":
        return function
    lines = _functions(ast.parse(script.read_text(encoding="utf-8")))
    return lines.get(row["source_line"], "<module>")


def _dishonest(script: Path, wanted: list[Label], here: list[dict[str, Any]]) -> list[str]:
    """Ops said to be exactly at a marked line whose mark does not name them."""
    marked = {label.line for label in wanted} - {x.line for x in wanted if x.name == REST}
    right = {(label.name, label.line) for label in wanted}
    names = {label.name for label in wanted}
    found = []
    for row in here:
        name, line = row["name"], row["source_line"]
        exact = row["source_via"] in ("line", "call") and row["phase"] != "backward"
        if exact and name in names and line in marked and (name, line) not in right:
            found.append(f"{script.name}:{line} {name} {row['source_via']}")
    return found
