"""What torch.compile says of its work in torch's structured trace, without torch.

The trace is the log that tlparse reads: records of a metadata object and a text, each of one
compilation (`2/0`: frame and how often it was compiled). Here they become rows of the layer
`compiler`, and for each compiled graph the source lines, operators and bytes of its kernels.

A graph that comes from a cache brings the lines of whoever compiled it first: another function
with the same operators, or the same one before an edit. So those lines are translated by the
graph that was traced this time, node by node; a kernel for which that cannot be done has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from neuron_explorer.collectors.linking.graphs import CompiledGraph, CompiledKernel, Trace
from neuron_explorer.collectors.readable_graph import Graph, Node, Place, Traffic, read_graph

MAX_COMPILATIONS = 2_000
"""Compilations whose graphs are remembered; the oldest are forgotten first."""

_GRAPHS = frozenset(
    [
        "aot_backward_graph",
        "aot_forward_graph",
        "aot_inference_graph",
        "dynamo_output_graph",
        "inductor_output_code",
        "inductor_post_grad_graph",
    ]
)
_METRICS = frozenset(["bwd_compilation_metrics", "compilation_metrics"])
_MAPPINGS = "inductor_provenance_tracking_node_mappings"
TRACES = "inductor_provenance_tracking_kernel_stack_traces"
_ARTIFACTS = frozenset(
    [
        "dynamo_graph_break_reason",
        "inductor_post_grad_graph",
        "recompile_reasons",
        _MAPPINGS,
        TRACES,
    ]
)
_CACHE = re.compile(r"^(?P<cache>fx_graph|aotautograd)_cache_(?P<state>\w+)$")
_CACHE_NAMES = {"fx_graph": "FX graph cache", "aotautograd": "AOTAutograd cache"}
_HANDLES = re.compile(r"\[Provenance debug handles\] (.+)$", re.MULTILINE)
_KEY = re.compile(r'"key": "(\w+)"')
_BYPASSED = re.compile(r'"cache_bypass_reason": "((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(
    r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE
)
_BREAK = re.compile(r"^Graph break in user code at (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_REASON = re.compile(
    r"^Graph Break Reason: (.*?)(?:\n\s*Hint:|\n\s*\n For more|\nUser code|\Z)", re.S | re.M
)
_STACK_LINE = re.compile(r"^Line: (?P<line>\d+), Name: (?P<function>.+?), Filename: (?P<file>.+)$")

_STAGES = {
    "backend_ns": "aot_autograd_cumulative_compile_time_us",
    "inductor_ns": "inductor_cumulative_compile_time_us",
    "code_gen_ns": "inductor_code_gen_cumulative_compile_time_us",
    "kernel_compile_ns": "triton_compile_time_us",
    "pre_grad_passes_ns": "pre_grad_pass_time_us",
    "joint_passes_ns": "joint_graph_pass_time_us",
    "post_grad_passes_ns": "post_grad_pass_time_us",
    "before_restart_ns": "dynamo_compile_time_before_restart_us",
    "gc_ns": "gc_time_us",
}
"""Attribute of a `compiler/compile` row -> torch's metric, us."""
_COUNTS = {"guards": "guard_count", "graph_ops": "graph_op_count"}

Row = dict[str, Any]
Shorten = Callable[[str], str]
Places = tuple[Place, ...]


class Note(NamedTuple):
    """One record that matters here."""

    kind: str
    at_ns: int
    tid: int
    graph_id: str
    fields: Mapping[str, Any]
    text: str


def note_of(metadata: Mapping[str, Any], text: str | None, at_ns: int, tid: int) -> Note | None:
    """The note of a record of the structured trace; None where it says nothing needed here.

    Args:
        metadata: The record's object, its name being one of the keys.
        text: Its payload.
        at_ns: When it was written, Unix ns.
        tid: Native id of the thread that wrote it.
    """
    kind = next((name for name in metadata if name in _GRAPHS or name in _METRICS), None)
    fields: Mapping[str, Any] = metadata[kind] if kind in _METRICS else {}
    if kind is None and "artifact" in metadata:
        kind, fields = _artifact(str(metadata["artifact"].get("name")), text or "")
    if kind is None:
        return None
    graph_id = f"{metadata.get('frame_id', '?')}/{metadata.get('frame_compile_id', '?')}"
    if kind == "cache":
        text = ""
    elif kind == "inductor_output_code":
        text = "\n".join(_HANDLES.findall(text or ""))
    return Note(kind, at_ns, tid, graph_id, fields, text or "")


def _artifact(name: str, text: str) -> tuple[str | None, Mapping[str, Any]]:
    if name in _ARTIFACTS:
        return name, {}
    if found := _CACHE.match(name):
        key, why = _KEY.search(text), _BYPASSED.search(text)
        said = {"key": key and key[1], "why": why and json.loads(f'"{why[1]}"')}
        return "cache", {**found.groupdict(), **said}
    return None, {}


@dataclass
class _Found:
    """A graph that was compiled or taken from a cache."""

    traces: Mapping[str, Sequence[str]]
    nodes: Mapping[str, Sequence[str]]
    to_pre: Mapping[str, Sequence[str]]
    graph: Graph
    key: str | None = None
    from_cache: bool = False

    @property
    def backward(self) -> bool:
        return any(name.startswith("tangents_") for name in self.graph.nodes)


@dataclass
class _Compilation:
    """What is known of one compilation so far."""

    graph_id: str
    traced: dict[str, Place] = field(default_factory=dict)
    """Line of each node of Dynamo's graph."""
    differentiated: dict[bool, dict[str, Place]] = field(default_factory=dict)
    """Line of each node of AOTAutograd's forward and backward graph."""
    states: dict[str, list[str]] = field(default_factory=dict)
    """What each cache said."""
    post: str = ""
    mappings: str = ""
    handles: str = ""
    """Kernels that the generated code calls, one or more a line."""
    waiting: _Found | None = None
    found: list[_Found] = field(default_factory=list)
    stack: str | None = None
    name: str | None = None
    ended: bool = False

    @property
    def whole_from_cache(self) -> bool:
        """Whether AOTAutograd's graphs are old prints as well."""
        return "hit" in self.states.get("aotautograd", ())


class CompileLog:
    """Turns notes into rows and compiled graphs, window after window.

    Args:
        shorten: The name of a file as the trace's other rows have it.
        vocabulary: Names of operators (`gelu`) that kernels may be named after.
    """

    def __init__(self, shorten: Shorten = str, vocabulary: Collection[str] = ()) -> None:
        self._shorten = shorten
        self._vocabulary = frozenset(vocabulary)
        self._compilations: dict[str, _Compilation] = {}
        self._graphs: dict[tuple[str, str | None, tuple[str, ...]], CompiledGraph] = {}
        self._waiting: list[tuple[Row, _Compilation]] = []
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
        return rows

    def graphs(self) -> list[CompiledGraph]:
        """All graphs known so far."""
        return list(self._graphs.values())

    def _read(self, note: Note) -> list[Row]:
        compilation = self._compilation(note)
        if note.kind in _METRICS:
            return [self._compile(note, compilation)]
        if note.kind == "cache":
            return [self._cache(note, compilation)]
        if note.kind == "dynamo_graph_break_reason":
            return [self._graph_break(note)]
        if note.kind == "recompile_reasons":
            row = _row(note, "recompile", "recompilation", reason=note.text.strip())
            self._waiting.append((row, compilation))
            return [row]
        self._learn(note, compilation)
        return []

    def _compilation(self, note: Note) -> _Compilation:
        known = self._compilations.get(note.graph_id)
        again = note.kind in ("dynamo_output_graph", "recompile_reasons")
        # after torch._dynamo.reset() the numbers begin anew
        if known is None or (again and known.ended):
            known = self._compilations[note.graph_id] = _Compilation(note.graph_id)
        return known

    def _learn(self, note: Note, compilation: _Compilation) -> None:
        if note.kind == "dynamo_output_graph":
            compilation.traced = read_graph(note.text).places()
        elif note.kind.startswith("aot_"):
            backward = note.kind == "aot_backward_graph"
            compilation.differentiated[backward] = read_graph(note.text).places()
        elif note.kind == "inductor_post_grad_graph":
            compilation.post = note.text
        elif note.kind == "inductor_output_code":
            compilation.handles = note.text
        elif note.kind == _MAPPINGS:
            compilation.mappings = note.text
        elif note.kind == TRACES:
            self._close(compilation)
            compilation.waiting = _found(note, compilation)
            compilation.post = compilation.mappings = compilation.handles = ""

    def _close(self, compilation: _Compilation) -> None:
        if compilation.waiting is not None:
            compilation.found.append(compilation.waiting)
            compilation.waiting = None

    def _cache(self, note: Note, compilation: _Compilation) -> Row:
        said = note.fields
        compilation.states.setdefault(said["cache"], []).append(said["state"])
        if said["cache"] == "fx_graph" and compilation.waiting is not None:
            compilation.waiting.key = said["key"]
            compilation.waiting.from_cache = said["state"] == "hit"
            self._close(compilation)
        reason = ": ".join(filter(None, (said["state"], said["why"])))
        row = _row(note, "cache_lookup", _CACHE_NAMES[said["cache"]], reason=reason)
        row["attributes"] = json.dumps({"state": said["state"], "key": said["key"]})
        self._waiting.append((row, compilation))
        return row

    def _graph_break(self, note: Note) -> Row:
        reason, at = _REASON.search(note.text), _BREAK.search(note.text)
        frames = note.text.partition("User code traceback:")[2].partition("Traceback (most")[0]
        places = [_place(found) for found in _FRAME.finditer(frames)]
        if not places and at:
            places = [Place(at["file"], int(at["line"]), "<unknown>")]
        said = reason[1] if reason else note.text.split("\n\n")[0]
        row = _row(note, "graph_break", "graph break", reason=_one_line(said))
        row["stack"] = self._stack_text(places)
        return row

    def _compile(self, note: Note, compilation: _Compilation) -> Row:
        said = note.fields
        self._close(compilation)
        compilation.ended = True
        if said.get("co_name"):
            compilation.name = said["co_name"]
            compilation.stack = self._stack_text(_compiled_at(said))
        start, duration = _span(said, note.at_ns)
        row = _row(note, "compile", compilation.name or "compilation", reason=_failure(said))
        row |= {"start_ns": start, "duration_ns": duration, "stack": compilation.stack}
        forward = note.kind == "compilation_metrics"
        row["attributes"] = json.dumps(_attributes(said, compilation, forward=forward))
        return row

    def _stack_text(self, places: Iterable[Place]) -> str | None:
        lines = [f"{self._shorten(p.file)}({p.line}): {p.function}" for p in places]
        return "\n".join(lines) or None

    def _finish(self, compilation: _Compilation) -> None:
        """Make compiled graphs of what is found; forget the texts."""
        if compilation.waiting is not None and not compilation.ended:
            return
        moves = _moves(compilation)
        for found in compilation.found:
            order = sorted(found.traces, key=lambda name: int(name.rpartition(":")[2] or 0))
            nodes = [found.nodes.get(name, ()) for name in order]
            traffic = Traffic(found.graph, nodes)
            kernels = []
            for number, name in enumerate(order):
                traces = _true_traces(compilation, found, name, moves)
                read, write = traffic.of(number)
                plain = name.rpartition(":")[0]
                ops = self._ops(plain, [found.graph.nodes.get(node) for node in nodes[number]])
                frames = tuple(self._frames(trace) for trace in traces)
                kernels.append(CompiledKernel(plain, frames, ops, read, write))
            graph = CompiledGraph(compilation.graph_id, found.key, tuple(kernels))
            self._graphs[graph.graph_id, graph.key, tuple(order)] = graph
        compilation.found = []

    def _frames(self, trace: Places) -> Trace:
        return tuple((p.file, self._shorten(p.file), p.line, p.function) for p in trace)

    def _ops(self, name: str, nodes: Sequence[Node | None]) -> tuple[str, ...]:
        """Operators the kernel is named after, else those of its nodes."""
        fused = re.sub(r"^.*?fused_(?P<ops>.*)_\d+$", r"\g<ops>", name)
        named = _words(fused, self._vocabulary) if fused != name else None
        if named:
            return tuple(f"aten::{word}" for word in named)
        ops = [node.op for node in nodes if node and node.op and node.op != "item"]
        return tuple(sorted(set(ops)))


def _found(note: Note, compilation: _Compilation) -> _Found:
    mapping = json.loads(compilation.mappings) if compilation.mappings else {}
    traces = json.loads(note.text) if note.text else {}
    nodes = mapping.get("cppCodeToPost") or {}
    if not nodes and note.fields.get("nodes", {}).keys() == traces.keys():
        nodes = note.fields["nodes"]
    # torch does not forget the kernels of one backward before it compiles the next
    called = set(re.split(r"[,\s]+", compilation.handles)) if compilation.handles else set(traces)
    traces = {name: found for name, found in traces.items() if name in called}
    return _Found(traces, nodes, mapping.get("postToPre") or {}, read_graph(compilation.post))


def _fresh(compilation: _Compilation, found: _Found, node: str) -> set[Place]:
    """Lines of a node of a graph from a cache, by what was traced this time."""
    if compilation.whole_from_cache:
        names: Iterable[str] = found.to_pre.get(node, ())
        places = compilation.traced
    else:
        names, places = (node,), compilation.differentiated.get(found.backward, {})
    return {places[name] for name in names if name in places}


def _moves(compilation: _Compilation) -> dict[Place, set[Place]]:
    """Old line -> lines now, of all graphs that came from a cache."""
    moves: dict[Place, set[Place]] = {}
    for found in compilation.found:
        for name, node in found.graph.nodes.items() if found.from_cache else ():
            if node.place is not None:
                moves.setdefault(node.place, set()).update(_fresh(compilation, found, name))
    return {old: new for old, new in moves.items() if new}


def _true_traces(
    compilation: _Compilation, found: _Found, kernel: str, moves: Mapping[Place, set[Place]]
) -> list[Places]:
    """Where the nodes of a kernel come from; nothing where that is uncertain for one of them."""
    traces = [
        tuple(_place(frame) for frame in _FRAME.finditer(text)) for text in found.traces[kernel]
    ]
    here = set(found.graph.places().values())
    traces = [trace for trace in traces if trace and (not here or trace[-1] in here)]
    if not found.from_cache:
        return traces
    nothing_moved = bool(moves) and all(new == {old} for old, new in moves.items())
    if nothing_moved:
        return traces
    if all(len(moves.get(trace[-1], ())) == 1 for trace in traces):
        return [(place,) for trace in traces for place in moves[trace[-1]]]
    fresh = [_fresh(compilation, found, node) for node in found.nodes.get(kernel, ())]
    if fresh and all(fresh):
        return [(place,) for place in sorted(set().union(*fresh))]
    return []


def _place(found: re.Match[str]) -> Place:
    return Place(found["file"], int(found["line"]), found["function"])


def _row(note: Note, kind: str, name: str, *, reason: str | None) -> Row:
    return {
        "role": f"compiler/{kind}",
        "name": name,
        "start_ns": note.at_ns,
        "tid": note.tid,
        "graph_id": note.graph_id if "?" not in note.graph_id else None,
        "reason": reason or None,
    }


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return " ".join(word for word, _ in groupby(filter(None, lines)))


def _compiled_at(said: Mapping[str, Any]) -> list[Place]:
    """Frames from the call to the function that was compiled."""
    found = [_STACK_LINE.match(line) for line in said.get("stack_trace") or ()]
    places = [_place(line) for line in found if line]
    own = Place(said["co_filename"], int(said["co_firstlineno"]), said["co_name"])
    if not places or places[-1].function != own.function:
        places.append(own)
    return places


def _span(said: Mapping[str, Any], now_ns: int) -> tuple[int, int | None]:
    start, duration = said.get("start_time_us"), said.get("duration_us")
    if start is None and said.get("start_time") is not None:
        start = int(said["start_time"] * 1e6)
    if duration is None and said.get("entire_frame_compile_time_s") is not None:
        duration = int(said["entire_frame_compile_time_s"] * 1e6)
    length = None if duration is None else int(duration) * 1000
    return now_ns if start is None else int(start) * 1000, length


def _failure(said: Mapping[str, Any]) -> str | None:
    kind, why = said.get("fail_type"), said.get("fail_reason")
    return _one_line(f"{kind}: {why}") if kind else None


def _attributes(said: Mapping[str, Any], compilation: _Compilation, *, forward: bool) -> Row:
    found: Row = {"forward": forward}
    for name, metric in _STAGES.items():
        if said.get(metric) is not None:
            found[name] = int(said[metric]) * 1000
    found |= {
        name: said[metric] for name, metric in _COUNTS.items() if said.get(metric) is not None
    }
    hits = sum(int(said.get(f"inductor_fx_{w}_cache_hit_count") or 0) for w in ("local", "remote"))
    missed = said.get("inductor_fx_local_cache_miss_count")
    if hits or missed:
        found["cache"] = "cold" if missed else "warm"
    for cache, states in compilation.states.items():
        found[f"{cache}_cache"] = states[-1]
    if said.get("restart_reasons"):
        found["restarts"] = [_one_line(reason) for reason in said["restart_reasons"]]
    return found


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
