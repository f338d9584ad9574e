"""What torch.compile says of its work in torch's structured trace, without torch.

Its records become rows of the layer `compiler`, and for each compiled graph the source lines,
operators and bytes of its kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from neuron_explorer.collectors.compile_notes import MAPPINGS, METRICS, TRACES, Note
from neuron_explorer.collectors.compile_rows import (
    Row,
    Shorten,
    cache_row,
    compile_row,
    compiled_at,
    graph_break_row,
    plain_row,
    stack_text,
)
from neuron_explorer.collectors.compiled_kernels import Compilation, found_graph, kernels
from neuron_explorer.collectors.linking.kernels import CompiledGraph
from neuron_explorer.collectors.readable_graph import Graph, read_graph

MAX_COMPILATIONS = 2_000
"""Compilations whose graphs are remembered; the oldest are forgotten first."""
MAX_GRAPHS = 4 * MAX_COMPILATIONS

_Key = tuple[str, str | None, tuple[str, ...], int]


class CompileLog:
    """Turns notes into rows and compiled graphs, window after window.

    Args:
        shorten: The name of a file as the trace's other rows have it.
        vocabulary: Names of operators (`gelu`) that kernels may be named after.
    """

    def __init__(self, shorten: Shorten = str, vocabulary: Collection[str] = ()) -> None:
        self._shorten = shorten
        self._vocabulary = frozenset(vocabulary)
        self._compilations: dict[str, Compilation] = {}
        self._graphs: dict[_Key, CompiledGraph] = {}
        self._waiting: list[tuple[Row, Compilation]] = []
        """Rows whose line is known once their compilation has ended."""

    def add(self, notes: Iterable[Note]) -> list[Row]:
        """Read more notes; returns the rows of `recorded.RECORDED` that they make."""
        rows: list[Row] = []
        for note in notes:
            rows += self._read(note)
        for row, compilation in self._waiting:
            row["stack"] = compilation.stack
        self._waiting.clear()
        for compilation in self._compilations.values():
            self._finish(compilation)
        for old in list(self._compilations)[:-MAX_COMPILATIONS]:
            del self._compilations[old]
            self._graphs = {k: g for k, g in self._graphs.items() if g.graph_id != old}
        # ids that begin anew leave the graphs of those before
        for key in list(self._graphs)[:-MAX_GRAPHS]:
            del self._graphs[key]
        return rows

    def graphs(self) -> list[CompiledGraph]:
        """All graphs known so far."""
        return list(self._graphs.values())

    def _read(self, note: Note) -> list[Row]:
        compilation = self._compilation(note)
        if note.kind in METRICS:
            return [self._compile(note, compilation)]
        if note.kind == "cache":
            return [self._cache(note, compilation)]
        if note.kind == "dynamo_graph_break_reason":
            return [graph_break_row(note, self._shorten)]
        if note.kind == "recompile_reasons":
            row = plain_row(note, "recompile", "recompilation", reason=note.text.strip())
            self._waiting.append((row, compilation))
            return [row]
        self._learn(note, compilation)
        return []

    def _compilation(self, note: Note) -> Compilation:
        known = self._compilations.get(note.graph_id)
        again = note.kind in ("dynamo_output_graph", "recompile_reasons")
        # after torch._dynamo.reset() the numbers begin anew
        if known is None or (again and known.ended):
            if known is not None:
                self._finish(known)
            known = self._compilations[note.graph_id] = Compilation(note.graph_id, note.at_ns)
        return known

    def _learn(self, note: Note, compilation: Compilation) -> None:
        if note.kind == "dynamo_output_graph":
            compilation.traced = read_graph(note.text).places()
        elif note.kind == "aot_joint_graph":
            compilation.joint = read_graph(note.text)
        elif note.kind.startswith("aot_"):
            backward = note.kind == "aot_backward_graph"
            compilation.differentiated[backward] = read_graph(note.text)
        elif note.kind == "inductor_post_grad_graph":
            compilation.post = note.text
        elif note.kind == "inductor_output_code":
            compilation.handles = note.text
        elif note.kind == MAPPINGS:
            compilation.mappings = note.text
        elif note.kind == TRACES:
            self._close(compilation)
            compilation.waiting = found_graph(note, compilation)
            compilation.post = compilation.mappings = compilation.handles = ""

    def _close(self, compilation: Compilation) -> None:
        if compilation.waiting is not None:
            compilation.found.append(compilation.waiting)
            compilation.waiting = None

    def _cache(self, note: Note, compilation: Compilation) -> Row:
        said = note.fields
        compilation.states.setdefault(said["cache"], []).append(said["state"])
        if said["cache"] == "fx_graph" and compilation.waiting is not None:
            compilation.waiting.key = said["key"]
            compilation.waiting.from_cache = said["state"] == "hit"
            self._close(compilation)
        row = cache_row(note)
        self._waiting.append((row, compilation))
        return row

    def _compile(self, note: Note, compilation: Compilation) -> Row:
        said = note.fields
        self._close(compilation)
        compilation.ended = True
        if said.get("co_name"):
            compilation.name = said["co_name"]
            compilation.stack = stack_text(compiled_at(said), self._shorten)
        row = compile_row(note, compilation.name, compilation.states)
        row["stack"] = compilation.stack
        return row

    def _finish(self, compilation: Compilation) -> None:
        """Make compiled graphs of what is found; forget the texts."""
        if compilation.waiting is not None and not compilation.ended:
            return
        for found, made in kernels(compilation, self._shorten, self._vocabulary):
            since = compilation.began_ns
            graph = CompiledGraph(compilation.graph_id, found.key, made, found.backward, since)
            self._graphs[graph.graph_id, found.key, tuple(found.order), since] = graph
        compilation.found = []
        compilation.joint = Graph()
