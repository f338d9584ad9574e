"""Whether `diff` names the line that was changed: slow scripts of the labelled set against fixed.

python tests/benchmarks/diff_pairs.py [NAME ...]
"""

from __future__ import annotations

import ast
import runpy
import shutil
import sys
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

from pairs import OUTPUT, Pair, one_thread, pairs, place_of_its_own

from neuron_explorer.analyzers.compare import LinePair, Row, compare
from neuron_explorer.analyzers.runner import Report
from neuron_explorer.trace import Trace

NOT_OF_A_STEP = {
    "warm_up_counted": "its fault is the window, whose first step warms up; the step is the same",
}
"""Pairs whose fault no comparison of steps can name."""
_NO_FINDINGS = Report([], [], [], {})
"""They say nothing of the order of lines."""


@dataclass(frozen=True)
class Named:
    """What `diff` says of one pair."""

    pair: Pair
    rows: tuple[Row, ...]
    """Lines in the order of the report."""
    touched: tuple[bool, ...]
    """Whether each is a line that was edited, or the one that the pair is labelled with."""

    @property
    def first(self) -> bool:
        """Whether the line named first is one of these."""
        return bool(self.touched) and self.touched[0]

    @property
    def counted(self) -> bool:
        """Whether it is more than noise, too."""
        return self.first and self.rows[0].changed

    def __str__(self) -> str:
        said = "FIRST" if self.first else "no"
        shown = "; ".join(_shown(row) for row in self.rows[:3])
        judged = "beyond noise" if self.counted else "not judged or within noise"
        return f"{self.pair.name:<32} {said:<6} {judged:<27} {shown}"


def _shown(row: Row) -> str:
    line = row.pair.latest.number if row.pair is not None else "?"
    return f"{row.verdict} {line} {row.delta_ns / 1e6:+.2f} ms"


def named(pair: Pair) -> Named:
    """Capture both scripts under one name, as versions of one file, and compare them."""
    with TemporaryDirectory() as folder:
        base = _captured(pair.slow, Path(folder) / "base")
        new = _captured(pair.fixed, Path(folder) / "new")
        with Trace.open([base]) as before, Trace.open([new]) as after:
            seen = compare(before, after, (_NO_FINDINGS, _NO_FINDINGS))
    rows = tuple(seen.of_kind("line"))
    old, fresh = _edited(pair)
    old |= {label.line for label in pair.labels if label.line is not None}
    touched = tuple(row.pair is not None and _is_in(row.pair, old, fresh) for row in rows)
    return Named(pair, rows, touched)


def _captured(script: Path, folder: Path) -> Path:
    """Run a copy called `program.py`, and keep its trace."""
    folder.mkdir()
    copy, kept = folder / "program.py", folder / "trace.parquet"
    shutil.copyfile(script, copy)
    with place_of_its_own():
        runpy.run_path(str(copy), run_name="__main__")
        shutil.copyfile(OUTPUT, kept)
    return kept


def _edited(pair: Pair) -> tuple[set[int], set[int]]:
    """Numbers of the lines that differ, in the slow and in the fixed script."""
    slow, fixed = (path.read_text("utf-8").splitlines() for path in (pair.slow, pair.fixed))
    old: set[int] = set()
    fresh: set[int] = set()
    for what, i, i_end, j, j_end in SequenceMatcher(
        None, slow, fixed, autojunk=False
    ).get_opcodes():
        if what != "equal":
            old |= set(range(i + 1, i_end + 1))
            fresh |= set(range(j + 1, j_end + 1))
    return old | _decorated(pair, fresh), fresh


def _decorated(pair: Pair, fresh: set[int]) -> set[int]:
    """Lines of the slow script in functions that have another decorator in the fixed one."""
    slow, fixed = (ast.walk(ast.parse(p.read_text("utf-8"))) for p in (pair.slow, pair.fixed))
    names = {
        each.name
        for each in fixed
        if isinstance(each, ast.FunctionDef)
        and any(decorator.lineno in fresh for decorator in each.decorator_list)
    }
    return {
        number
        for each in slow
        if isinstance(each, ast.FunctionDef) and each.name in names
        for number in range(each.lineno, (each.end_lineno or each.lineno) + 1)
    }


def _is_in(pair: LinePair, old: set[int], fresh: set[int]) -> bool:
    return (pair.base is not None and pair.base.number in old) or (
        pair.new is not None and pair.new.number in fresh
    )


def main() -> int:
    chosen = [pair for pair in pairs() if not sys.argv[1:] or pair.name in sys.argv[1:]]
    with one_thread():
        found = []
        for pair in chosen:
            found.append(named(pair))
            why = NOT_OF_A_STEP.get(pair.name)
            note = f"; not counted: {why}" if why else ""
            print(f"{found[-1]}{note}", flush=True)  # noqa: T201 - the result, as it comes
    expected = [each for each in found if each.pair.name not in NOT_OF_A_STEP]
    first, counted = (
        sum(getattr(each, name) for each in expected) for name in ("first", "counted")
    )
    print(f"first {first} of {len(expected)}, beyond noise {counted}")  # noqa: T201 - the result
    return 0 if first == len(expected) else 1


if __name__ == "__main__":
    sys.exit(main())
