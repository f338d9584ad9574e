"""What a compiled graph is made of: its kernels, and where each of them comes from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from neuron_explorer.collectors.linking.frames import Owners
from neuron_explorer.collectors.linking.sources import Stack, stack_of

Trace = tuple[tuple[str, str, int, str], ...]
"""Frames, outermost first: full file name, the name to show, line and function."""


def row_name(kernel: str) -> str:
    """Name of the rows that a kernel leaves: `aten::mm` for `extern_kernels.mm`."""
    parts = kernel.split(".")
    if parts[0] == "extern_kernels":
        return f"aten::{parts[-1]}"
    named = [part for part in parts if part not in ("torch", "ops")]
    return "::".join(named[:2]) if len(parts) > 1 else kernel


@dataclass(frozen=True)
class CompiledKernel:
    """One call of a kernel in a compiled graph."""

    name: str
    traces: tuple[Trace, ...]
    """Where its nodes come from, each once or more; empty where unknown."""
    ops: tuple[str, ...]
    read_bytes: int | None
    write_bytes: int | None

    @property
    def row_name(self) -> str:
        """Name of the rows it leaves."""
        return row_name(self.name)

    def stacks(self, owners: Owners) -> list[Stack]:
        """One stack for each source line.

        First is the line that most of its expressions stand in, of several the one traced last.
        """
        known = list(filter(None, (stack_of(trace, owners) for trace in self.traces)))
        often = Counter((stack.source.file, stack.source.line) for stack in known)
        by_line = {(s.source.file, s.source.line): s for s in reversed(known)}
        latest = {line: place for place, line in enumerate(often)}
        order = sorted(often, key=lambda line: (-often[line], -latest[line]))
        return [by_line[line] for line in order]

    def with_ops(self, attributes: str | None) -> str | None:
        """JSON attributes of a row with the kernel's operators added."""
        if not self.ops:
            return attributes
        known = json.loads(attributes) if attributes else {}
        return json.dumps({**known, "aten_ops": self.ops})


@dataclass(frozen=True)
class CompiledGraph:
    """The kernels of one compiled graph, in the order of their calls."""

    graph_id: str
    key: str | None
    """Of Inductor's cache; None where it was not asked."""
    kernels: tuple[CompiledKernel, ...]
    backward: bool = False
    since_ns: int = 0
    """When its compilation began; where ids begin anew, the latest before a call counts."""


def in_force(graphs: Sequence[CompiledGraph], at_ns: int) -> list[CompiledGraph]:
    """Of the graphs of one id, those of the compilation that a call at some time was of."""
    begun = [graph.since_ns for graph in graphs if graph.since_ns <= at_ns]
    since = max(begun, default=min((graph.since_ns for graph in graphs), default=0))
    return [graph for graph in graphs if graph.since_ns == since]
