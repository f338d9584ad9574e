"""What a test may demand of the steps that it captured; messages name the line.

Each assertion raises AssertionError where the trace says otherwise, and also where the trace
cannot tell: what was not recorded has not passed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neuron_explorer.analyzers import Report, analyzers, run
from neuron_explorer.errors import UsageError
from neuron_explorer.findings import SEVERITIES
from neuron_explorer.reports import formats
from neuron_explorer.trace import Trace

Row = Mapping[str, Any]

_SHOWN = 5
"""Lines that a message names."""

_COMPILED = """
SELECT kind, reason, name, source_file, source_line
FROM compilations
WHERE start_ns >= $begun_ns
ORDER BY start_ns
"""
_SYNCS = """
SELECT source_file, source_line, coalesce(op_name, name) AS name, cause, count(*) AS times
FROM syncs
WHERE step IS NOT NULL OR NOT EXISTS (SELECT 1 FROM steps)
GROUP BY ALL
ORDER BY times DESC, source_file, source_line
"""
_IDLE = """
SELECT median(idle_ns / nullif(duration_ns, 0)) AS share, count(*) AS steps
FROM steps
"""
_DEVICES = "SELECT DISTINCT device FROM work ORDER BY device"
_BEFORE = """
SELECT w.source_file, w.source_line, sum(g.duration_ns) AS idle_ns
FROM gaps AS g
INNER JOIN work AS w ON g.rank = w.rank AND g.after_event_id = w.event_id
WHERE g.step IS NOT NULL AND w.source_file IS NOT NULL
GROUP BY ALL
ORDER BY idle_ns DESC, w.source_file, w.source_line
"""


class CapturedStep:
    """A recording of a test, and assertions on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun_ns = time.time_ns()
        self._trace: Trace | None = None
        self._report: Report | None = None

    @contextmanager
    def __call__(self, **options: Any) -> Iterator[Any]:
        """Record; call `step()` of what it yields after each step.

        Args:
            options: Arguments of `neuron_explorer.profile`; the output is the test's own folder.
        """
        from neuron_explorer.collectors.capture.session import profile  # noqa: PLC0415 - torch

        self.close()
        with profile(**({"output": self._folder / "trace.parquet"} | options)) as session:
            yield session
        self._trace = session.trace

    @property
    def trace(self) -> Trace:
        """What was recorded.

        Raises:
            UsageError: Nothing has been yet.
        """
        if self._trace is None:
            raise UsageError(
                "neuron_trace has recorded nothing yet", hint="with neuron_trace() as profiler: ..."
            )
        return self._trace

    @property
    def report(self) -> Report:
        """What all analyzers say of it."""
        if self._report is None:
            self._report = run(self.trace)
        return self._report

    def close(self) -> None:
        """Free the trace."""
        if self._trace is not None:
            self._trace.close()
        self._trace = self._report = None

    def assert_no_graph_breaks(self) -> None:
        """torch.compile compiled something since the test began, and each call as one graph.

        Raises:
            AssertionError: A graph broke, or nothing was compiled that this could tell of.
        """
        __tracebackhide__ = True
        self._assert_none_compiled("graph_break", "graph breaks")

    def assert_no_recompilations(self) -> None:
        """No guard failed and made torch.compile compile a function again.

        Raises:
            AssertionError: One did, or nothing was compiled that this could tell of.
        """
        __tracebackhide__ = True
        self._assert_none_compiled("recompile", "recompilations")

    def assert_no_host_sync(self) -> None:
        """Nothing in a step makes the host wait for the device: no `.item()`, no blocking copy.

        On a CPU these are the calls that would wait on an accelerator. Without marked steps all
        that was recorded counts.

        Raises:
            AssertionError: A call does.
        """
        __tracebackhide__ = True
        found = self._rows(_SYNCS)
        if found:
            lines = [f"{_place(row)}: {row['name']}, {_times(row['times'])}" for row in found]
            total = sum(row["times"] for row in found)
            raise AssertionError(_message(f"{total} host syncs in the steps", lines))

    def assert_device_idle_below(self, share: float) -> None:
        """The devices stand idle for less than `share` (0 to 1) of the median step.

        On a CPU-only trace the device is the CPU, which is idle while no op runs.

        Raises:
            AssertionError: They stand idle longer, or no step is marked.
        """
        __tracebackhide__ = True
        (row,) = self._rows(_IDLE)
        if row["share"] is None:
            raise AssertionError("no step is marked, so idle time is unknown: call profiler.step()")
        if row["share"] < share:
            return
        devices = ", ".join(each["device"] for each in self._rows(_DEVICES)) or "no device"
        lines = [
            f"{_place(each)}: idle for {formats.duration(each['idle_ns'])} before its work"
            for each in self._rows(_BEFORE)
        ]
        head = (
            f"{devices} idle for {row['share']:.1%} of the median of {row['steps']} steps,"
            f" the limit is {share:.1%}"
        )
        raise AssertionError(_message(head, lines))

    def assert_no_findings(self, *names: str) -> None:
        """No finding of these severities (or a more severe one) or analyzers.

        Args:
            names: Severities and ids of analyzers; without any, every finding counts.

        Raises:
            AssertionError: There is one, or a named analyzer could not judge the trace.
            UsageError: A name is neither a severity nor an analyzer.
        """
        __tracebackhide__ = True
        for name in names:
            if name not in SEVERITIES and name not in analyzers():
                raise UsageError(f"{name!r} is neither a severity nor an analyzer")
        least = max((SEVERITIES.index(name) + 1 for name in names if name in SEVERITIES), default=0)
        severe = SEVERITIES[:least] if names else SEVERITIES
        found = [
            f"{formats.place(each.source_file, each.source_line) or 'whole trace'}:"
            f" {each.severity} {each.analyzer}: {each.title}"
            for each in self.report.findings
            if each.severity in severe or each.analyzer in names
        ]
        if found:
            raise AssertionError(_message(f"{len(found)} findings", found))
        for skipped in self.report.not_applicable:
            if skipped.analyzer in names:
                raise AssertionError(f"{skipped.analyzer} could not judge: {skipped.reason}")

    def _assert_none_compiled(self, kind: str, what: str) -> None:
        __tracebackhide__ = True
        rows = self._rows(_COMPILED, {"begun_ns": self._begun_ns})
        if not rows:
            raise AssertionError(
                f"nothing was compiled while this test recorded, so {what} are unknown: compile"
                " inside of neuron_trace(), or call neuron_explorer.enable_compile_sources() first"
            )
        lines = [
            f"{_place(row)}: {(row['reason'] or row['name'] or '').partition(chr(10))[0]}"
            for row in rows
            if row["kind"] == kind
        ]
        if lines:
            raise AssertionError(_message(f"{len(lines)} {what}", lines))

    def _rows(self, query: str, params: Mapping[str, object] | None = None) -> list[Row]:
        return list(self.trace.sql(query, params).to_pylist())


def _place(row: Row) -> str:
    return formats.place(row["source_file"], row["source_line"]) or "unknown line"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _message(head: str, lines: Sequence[str]) -> str:
    shown = [f"  {line}" for line in lines[:_SHOWN]]
    if len(lines) > _SHOWN:
        shown.append(f"  and {len(lines) - _SHOWN} more")
    return "\n".join([f"{head}:" if shown else head, *shown])
