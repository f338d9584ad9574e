"""Where the kernels of one compilation come from: source lines, operators and bytes of each.

A graph that comes from a cache brings the lines of whoever compiled it first: another function
with the same operators, or the same one before an edit. So those lines are translated by the
graph that was traced this time, node by node; a kernel for which that cannot be done has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from neuron_explorer.collectors.compile_notes import Note
from neuron_explorer.collectors.linking.kernels import CompiledKernel, Trace, row_name
from neuron_explorer.collectors.readable_graph import (
    FRAME,
    Graph,
    Node,
    Place,
    Traffic,
    place_of,
    read_graph,
)

Places = tuple[Place, ...]
Shorten = Callable[[str], str]


@dataclass
class FoundGraph:
    """A graph that was compiled or taken from a cache."""

    traces: Mapping[str, Sequence[str]]
    nodes: Mapping[str, Sequence[str]]
    to_pre: Mapping[str, Sequence[str]]
    graph: Graph
    key: str | None = None
    from_cache: bool = False

    @property
    def order(self) -> list[str]:
        """Names of the kernels in the order of their calls."""
        return sorted(self.traces, key=lambda name: int(name.rpartition(":")[2] or 0))

    def nodes_of(self, kernel: str) -> list[str]:
        """Nodes that a kernel computes.

        torch names for a library's kernel all that its inputs were made of as well.
        """
        names = list(self.nodes.get(kernel, ()))
        called = row_name(kernel.rpartition(":")[0])
        own = [name for name in names if name in self.graph.nodes]
        own = [name for name in own if self.graph.nodes[name].op == called]
        return own or names

    def traffic(self) -> Traffic:
        """Bytes of the kernels, in order."""
        return Traffic(self.graph, [self.nodes_of(name) for name in self.order])

    @property
    def backward(self) -> bool:
        return any(name.startswith("tangents_") for name in self.graph.nodes)


@dataclass
class Compilation:
    """What is known of one compilation so far."""

    graph_id: str
    began_ns: int
    """Unix ns of its first note."""
    traced: dict[str, Place] = field(default_factory=dict)
    """Line of each node of Dynamo's graph."""
    differentiated: dict[bool, Graph] = field(default_factory=dict)
    """AOTAutograd's forward and backward graph."""
    joint: Graph = field(default_factory=Graph)
    """The graph of both, before any pass."""
    states: dict[str, list[str]] = field(default_factory=dict)
    """What each cache said."""
    post: str = ""
    mappings: str = ""
    handles: str = ""
    """Kernels that the generated code calls, one or more a line."""
    waiting: FoundGraph | None = None
    found: list[FoundGraph] = field(default_factory=list)
    stack: str | None = None
    name: str | None = None
    ended: bool = False

    @property
    def whole_from_cache(self) -> bool:
        """Whether AOTAutograd's graphs are old prints as well."""
        return "hit" in self.states.get("aotautograd", ())

    def graph_of(self, found: FoundGraph) -> Graph:
        """AOTAutograd's graph that a found one was made of; empty where it was not written."""
        return self.differentiated.get(found.backward, Graph())


def found_graph(note: Note, compilation: Compilation) -> FoundGraph:
    mapping = json.loads(compilation.mappings) if compilation.mappings else {}
    traces = json.loads(note.text) if note.text else {}
    nodes = mapping.get("cppCodeToPost") or {}
    if not nodes and note.fields.get("nodes", {}).keys() == traces.keys():
        nodes = note.fields["nodes"]
    # torch does not forget the kernels of one backward before it compiles the next
    called = set(re.split(r"[,\s]+", compilation.handles)) if compilation.handles else set(traces)
    traces = {name: found for name, found in traces.items() if name in called}
    return FoundGraph(traces, nodes, mapping.get("postToPre") or {}, read_graph(compilation.post))


def _fresh(compilation: Compilation, found: FoundGraph, node: str) -> set[Place]:
    """Lines of a node of a graph from a cache, by what was traced this time."""
    if compilation.whole_from_cache:
        names, places = found.to_pre.get(node, ()), compilation.traced
        return {places[name] for name in names if name in places}
    now = compilation.graph_of(found).nodes.get(node)
    return {now.place} if now and now.place else set()


def _moves(compilation: Compilation) -> dict[Place, set[Place]]:
    """Old line -> lines now, of all graphs that came from a cache."""
    moves: dict[Place, set[Place]] = {}
    for found in compilation.found:
        for name, node in found.graph.nodes.items() if found.from_cache else ():
            if node.place is not None:
                moves.setdefault(node.place, set()).update(_fresh(compilation, found, name))
    return {old: new for old, new in moves.items() if new}


def _true_traces(
    compilation: Compilation, found: FoundGraph, kernel: str, moves: Mapping[Place, set[Place]]
) -> list[Places]:
    """Where the nodes of a kernel come from; nothing where that is uncertain for one of them."""
    traces = [
        tuple(place_of(frame) for frame in FRAME.finditer(text)) for text in found.traces[kernel]
    ]
    nodes = found.nodes_of(kernel)
    here = _lines(found.graph, nodes) or set(found.graph.places().values())
    traces = [trace for trace in traces if trace and (not here or trace[-1] in here)]
    if not found.from_cache:
        return traces + _replaced(compilation, found, nodes, {trace[-1] for trace in traces})
    nothing_moved = bool(moves) and all(new == {old} for old, new in moves.items())
    if nothing_moved:
        return traces + _replaced(compilation, found, nodes, {trace[-1] for trace in traces})
    if all(len(moves.get(trace[-1], ())) == 1 for trace in traces):
        return [(place,) for trace in traces for place in moves[trace[-1]]]
    fresh = [_fresh(compilation, found, node) for node in nodes]
    if fresh and all(fresh):
        return [(place,) for place in sorted(set().union(*fresh))]
    return []


def _lines(graph: Graph, names: Sequence[str]) -> set[Place]:
    """Lines of some nodes, if all are known.

    A number that became a node stands where it was met first, and serves lines that have
    nothing to do with that one.
    """
    if not names or not all(name in graph.nodes for name in names):
        return set()
    nodes = [graph.nodes[name] for name in names]
    places = {node.place for node in nodes if node.place and not node.is_number}
    return places or {node.place for node in nodes if node.place}


def _replaced(
    compilation: Compilation, found: FoundGraph, names: Sequence[str], known: Collection[Place]
) -> list[Places]:
    """Lines of nodes that a pass of Inductor has put anew, and without a line.

    Such a node is the one it stands for where AOTAutograd's graph has the same call once.
    """
    if compilation.whole_from_cache:
        return []
    lost = [found.graph.nodes[name] for name in names if name in found.graph.nodes]
    places: dict[str, set[Place]] = {n.call: set() for n in lost if n.op and n.place is None}
    for graph in (compilation.joint, compilation.graph_of(found)) if places else ():
        for node in graph.nodes.values():
            if node.place and node.call in places:
                places[node.call].add(node.place)
    certain = {place for same in places.values() if len(same) == 1 for place in same}
    return [(place,) for place in sorted(certain - set(known))]


def kernels(
    compilation: Compilation, shorten: Shorten, vocabulary: frozenset[str]
) -> Iterator[tuple[FoundGraph, tuple[CompiledKernel, ...]]]:
    """The kernels of each graph that was found, in the order of their calls."""
    moves = _moves(compilation)
    for found in compilation.found:
        traffic, made = found.traffic(), []
        for number, name in enumerate(found.order):
            traces = _true_traces(compilation, found, name, moves)
            plain = name.rpartition(":")[0]
            nodes = [found.graph.nodes.get(node) for node in found.nodes_of(name)]
            frames = tuple(_frames(trace, shorten) for trace in traces)
            ops = _ops(plain, nodes, vocabulary)
            made.append(CompiledKernel(plain, frames, ops, *traffic.of(number)))
        yield found, tuple(made)


def _frames(trace: Places, shorten: Shorten) -> Trace:
    return tuple((p.file, shorten(p.file), p.line, p.function) for p in trace)


def _ops(name: str, nodes: Sequence[Node | None], vocabulary: frozenset[str]) -> tuple[str, ...]:
    """Operators the kernel is named after, else those of its nodes."""
    fused = re.sub(r"^.*?fused_(?P<ops>.*)_\d+$", r"\g<ops>", name)
    named = _words(fused, vocabulary) if fused != name else None
    if named:
        return tuple(f"aten::{word}" for word in named)
    ops = [node.op for node in nodes if node and node.op and node.op != "item"]
    return tuple(sorted(set(ops)))


def _words(text: str, vocabulary: frozenset[str]) -> list[str] | None:
    """A name such as `add_native_layer_norm` as the words it is joined from; longest first."""
    if not text:
        return []
    parts = text.split("_")
    for size in range(len(parts), 0, -1):
        word = "_".join(parts[:size])
        if word in vocabulary:
            rest = _words("_".join(parts[size:]), vocabulary)
            if rest is not None:
                return list(dict.fromkeys([word, *rest]))
    return None
