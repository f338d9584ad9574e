"""Scripts with a planted fault, the same without it, and healthy ones: what they say, how they run.

The convention of their docstrings is in tests/bottlenecks/README.md.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import gc
import os
import runpy
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self
from unittest import mock

import torch

import neuron_explorer
from neuron_explorer.analyzers import Report, run
from neuron_explorer.trace import Trace

FOLDER = Path(__file__).parents[1] / "bottlenecks"
OUTPUT = Path("trace.parquet")
NO_LINE = "none"
VERIFIABLE = "verifiable"

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's mallopt (malloc.h)."""
_BLOCK, _BLOCKS = 1 << 26, 16
"""Bytes of one piece of what is kept, and pieces."""


@dataclass(frozen=True)
class Label:
    """What must fire, and where."""

    analyzer: str
    line: int | None
    """None where the fault is the whole trace's."""


@dataclass(frozen=True)
class Pair:
    """A fault and its mend."""

    folder: Path
    labels: tuple[Label, ...]
    gain: str
    """`verifiable`, or why the gain cannot be measured here."""
    heavy: bool
    """Whether only `make score` runs it."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def slow(self) -> Path:
        return self.folder / "slow.py"

    @property
    def fixed(self) -> Path:
        return self.folder / "fixed.py"


def pairs() -> list[Pair]:
    return [read_pair(path.parent) for path in sorted(FOLDER.glob("*/slow.py"))]


def healthy() -> list[Path]:
    return sorted((FOLDER / "healthy").glob("*.py"))


def read_pair(folder: Path) -> Pair:
    """What the docstring of `slow.py` says."""
    text = (folder / "slow.py").read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(text)) or ""
    facts = [line.split(": ", 1) for line in said.splitlines() if ": " in line]
    lines = [value for key, value in facts if key == "line"]
    analyzers = [value for key, value in facts if key == "analyzer"]
    if not lines or len(lines) != len(analyzers):
        raise ValueError(f"{folder}/slow.py: one `line: ` for each `analyzer: `")
    begin = said.count("\n") + 1
    labels = [
        Label(analyzer, None if line == NO_LINE else _number(folder, text, line, begin))
        for analyzer, line in zip(analyzers, lines, strict=True)
    ]
    said_of = {key: value for key, value in facts if key in ("gain", "runs")}
    return Pair(folder, tuple(labels), said_of["gain"], said_of.get("runs") == "make score")


def _number(folder: Path, text: str, line: str, begin: int) -> int:
    numbers = [
        number
        for number, each in enumerate(text.splitlines(), 1)
        if each.strip() == line and number > begin
    ]
    if len(numbers) != 1:
        raise ValueError(f"{folder}/slow.py has the line {line!r} at {numbers}")
    return numbers[0]


@dataclass(frozen=True)
class Judged:
    """What all analyzers say of one run of a script."""

    report: Report
    span_ns: int

    def found(self, script: Path, label: Label) -> bool:
        return any(
            each.analyzer == label.analyzer
            and (
                label.line is None
                or (Path(each.source_file or "").name, each.source_line)
                == (script.name, label.line)
            )
            for each in self.report.findings
        )

    def saving(self, analyzer: str) -> tuple[float, float, float] | None:
        """Shares of the step that its findings promise together; None where they say nothing.

        Returns:
            At least, likely, at most.
        """
        known = [
            (each.saving_low_ns or 0, each.saving_likely_ns or 0, each.saving_high_ns)
            for each in self.report.findings
            if each.analyzer == analyzer and each.saving_high_ns is not None
        ]
        if not known or not self.span_ns:
            return None
        low, likely, high = (sum(values) / self.span_ns for values in zip(*known, strict=True))
        return low, min(likely, 1.0), min(high, 1.0)


def judge(script: Path, only: list[str] | None = None) -> Judged:
    """Run a script in this process and judge the trace that it leaves."""
    with place_of_its_own():
        gc.collect()  # garbage of earlier scripts is not this one's
        runpy.run_path(str(script), run_name="__main__")
        with Trace.open([OUTPUT]) as trace:
            spans = trace.sql("SELECT max(span_ns) AS span_ns FROM rank_spans").to_pylist()
            return Judged(run(trace, only=only), spans[0]["span_ns"] or 0)


@contextlib.contextmanager
def place_of_its_own() -> Iterator[None]:
    """Scripts write where they stand, and may change what the next one would inherit."""
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            torch.compiler.reset()  # a compiled graph belongs to the device it was made for
            gc.unfreeze()
            gc.enable()


class Stopwatch:
    """Stands in for `profile()` while a script is timed: it records nothing but times of steps."""

    steps_s: tuple[float, ...] = ()

    def __init__(self, **_options: object) -> None:
        self._ends: list[float] = []

    def __enter__(self) -> Self:
        self._ends = [time.perf_counter()]
        return self

    def step(self) -> None:
        self._ends.append(time.perf_counter())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        Stopwatch.steps_s = tuple(
            end - begin for begin, end in zip(self._ends, self._ends[1:], strict=False)
        )


class Timed:
    """A script that is loaded once and run often, unprofiled."""

    def __init__(self, script: Path) -> None:
        self._names: Mapping[str, Any] = runpy.run_path(str(script), run_name=script.stem)

    def step_s(self) -> float:
        """Seconds of one run of its steps, over their number."""
        with place_of_its_own(), mock.patch.object(neuron_explorer, "profile", Stopwatch):
            gc.collect()
            self._names["main"]()
        return sum(Stopwatch.steps_s) / len(Stopwatch.steps_s)


def keep_memory() -> bool:
    """What is freed stays with the process, where its allocator is glibc's; 1 GiB of it from here.

    Else a step pays for page faults or not as earlier allocations of the process have it: the same
    matmul takes 0.5 ms or 1.2, with and without a profiler alike. A first touch of a page takes
    2 us, on a virtual machine whose host has yet to give it 29: eight casts of 8 MB took 160 ms in
    place of 5. DuckDB returns the free heap of the whole process whenever a trace is opened, so
    the pages are locked.

    Returns:
        Whether they are: that takes glibc, and root or a `ulimit -l` above 1 GiB.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        return False
    libc.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
    libc.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
    touched = [torch.ones(_BLOCK, dtype=torch.uint8) for _ in range(_BLOCKS)]
    locked = all(
        libc.mlock(ctypes.c_void_p(block.data_ptr()), ctypes.c_size_t(_BLOCK)) == 0
        for block in touched
    )
    del touched
    return locked


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Ops wait for no second core that another process may hold."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
