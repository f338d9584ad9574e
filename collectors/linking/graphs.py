"""Compiled graphs: which graph each event ran in, what its kernels come from, time to compile.

A compiled graph runs in `Torch-Compiled Region: 2/0` and, where Inductor made it, inside of
`## Call CompiledFxGraph <key> ##`. A backward graph runs in no region, but in the backward of
an op that did. Kernels of a call are told apart by name and by the order of their calls.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from neuron_explorer.collectors.events import NULL, UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.interning import Codes, Interner
from neuron_explorer.collectors.linking.frames import USUAL, Owners
from neuron_explorer.collectors.linking.kernels import CompiledGraph, CompiledKernel, in_force
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest
from neuron_explorer.collectors.linking.sources import VIAS, Sources, Stack

_REGION = re.compile(r"^Torch-Compiled Region: (\d+/\d+)")
_COMPILE_ID = re.compile(r"_data: .*\bcompile_id=(\d+/\d+)")
_CALL = re.compile(r"^## Call CompiledFxGraph (\w+) ##")
_RUNS_COMPILED = re.compile(
    r"^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFxGraph|CompiledFunction"
    r"|Pregraph bytecode|## Call .* with compiled)"
)
_OWN_KERNEL = re.compile(r"^(graph_\d+_)?(cpp|triton)_(\w+_)?(fused|poi|red|per|tem|mm)_")
_PREFIX = re.compile(r"^graph_\d+_")
_COMPILING = ("compiler/compile", "compiler/stage")


@dataclass
class GraphLinks:
    """What a file's events have to do with compiled graphs."""

    graph: Codes
    """Code into `ids` of the graph each row belongs to."""
    ids: list[str]
    compiling: Bools
    """Rows of a compilation, and all that ran only because of one."""
    compile_ns: Ints
    """Time to compile inside of each row that is no part of a compilation; UNKNOWN = none."""
    kernel: Codes | None = None
    """Code into `kernels` of each row of one, and of what it calls; None where there is none."""
    called: Bools | None = None
    """Rows that are calls of a kernel themselves."""
    kernels: list[CompiledKernel] = field(default_factory=list)
    stacks: list[list[Stack]] = field(default_factory=list)
    """Of each of `kernels`: one for each source line, that of most of it first."""
    unsourced: list[str] = field(default_factory=list)
    """Names of kernels and graph calls in this file whose lines are not known."""


def settle_compilations(events: Events, parent: Rows) -> None:
    """Leave one `compiler/compile` row for each compilation; others become stages of it.

    torch marks a compilation by several rows inside each other: the outermost counts. Where a
    capture wrote down the compilation itself, that row counts and torch's are stages.
    """
    rows = events.roles("compiler/compile")
    if not rows.any():
        return
    ours = np.zeros(len(events), np.bool_)
    ours[events.recorded["graph_id"].rows] = True
    ours &= rows
    theirs = np.flatnonzero(rows & ~ours)
    nested = nearest(parent, rows)[theirs] >= 0
    stage = theirs[nested | _overlap(events, theirs, np.flatnonzero(ours))]
    events.role[stage] = events.names.role.code("compiler/stage")


def _overlap(events: Events, rows: Ints, others: Ints) -> Bools:
    """Which rows run at a time at which one of the others runs on the same thread."""
    found = np.zeros(len(rows), np.bool_)
    start, end = events.start[rows], events.end(rows)
    for other in others.tolist():
        same = events.track[rows] == events.track[other]
        last = int(events.end(np.array([other]))[0])
        found |= same & (start < last) & (end > events.start[other])
    return found


def compiled(events: Events, parent: Rows) -> Bools:
    """Host rows inside a region that torch.compile made, and not in a compilation there."""
    regions = events.named(lambda name: bool(_RUNS_COMPILED.match(name)))
    regions &= events.roles("framework/")
    around = nearest(parent, regions | events.roles(*_COMPILING), include_self=True)
    return np.append(regions, False)[around]


def link_graphs(
    events: Events,
    parent: Rows,
    forward: Rows | None,
    giver: Rows,
    known: Sequence[CompiledGraph] = (),
    owners: Owners = USUAL,
) -> GraphLinks:
    """Graph, compilation and kernel of each row.

    Args:
        events: The events, after `settle_compilations`.
        parent: Innermost event around each.
        forward: Forward op of each backward row.
        giver: Launch, else op, of each hardware row.
        known: Graphs that a capture saw being compiled.
        owners: Whose code it is where the usual rules do not say.
    """
    at_work = events.roles(*_COMPILING)
    outer = nearest(parent, at_work)
    ids = Interner()
    calls = events.named(lambda name: bool(_CALL.match(name))) & events.roles("framework/")
    found = GraphLinks(
        graph=_graph_ids(events, parent, forward, ids, unnamed=bool(calls.any())),
        ids=[],
        compiling=at_work | (outer >= 0),
        compile_ns=_inner_times(events, parent, at_work, outer),
    )
    if calls.any():
        _name_graphs(events, parent, calls, known, found.graph, ids)
    found.ids = ids.texts
    if calls.any():
        _read_calls(events, parent, giver, calls, _Finder(events, forward, known, found, owners))
    work = np.flatnonzero(events.roles("hardware/") & (giver >= 0))
    if ids.texts:
        # a device's own word for its graph counts
        unnamed = work[found.graph[work] == NULL]
        found.graph[unnamed] = found.graph[giver[unnamed]]
    found.compiling[work] = found.compiling[giver[work]]
    return found


def _graph_ids(
    events: Events, parent: Rows, forward: Rows | None, ids: Interner, *, unnamed: bool
) -> Codes:
    """Graph of each row by what is recorded; `unnamed`: calls may tell of more graphs."""
    by_name = np.full(len(events.names.name) + 1, NULL, np.int32)
    noted = np.zeros(len(by_name), np.bool_)
    for code, text in enumerate(events.names.name.texts):
        if said := _REGION.match(text) or _COMPILE_ID.search(text):
            by_name[code] = ids.code(said[1])
            noted[code] = said.re is _COMPILE_ID
    if not (ids.texts or unnamed or len(events.recorded["graph_id"].rows)):
        return np.broadcast_to(np.int32(NULL), len(events))  # of any length, in four bytes
    own = by_name[events.name]
    # what torch says of a stage stands in an annotation inside of it
    notes = np.flatnonzero(noted[events.name] & (parent >= 0))
    own[parent[notes]] = own[notes]
    texts = events.names.recorded["graph_id"].texts
    codes = np.array([*(ids.code(text) for text in texts), NULL], np.int32)
    recorded = events.recorded["graph_id"]
    own[recorded.rows] = codes[recorded.values]
    around = nearest(parent, own != NULL, include_self=True)
    graph = np.where(around >= 0, own[around], NULL).astype(np.int32)
    if forward is not None:
        rows = np.flatnonzero((graph == NULL) & (forward >= 0))
        graph[rows] = graph[forward[rows]]
    return graph


def _inner_times(events: Events, parent: Rows, at_work: Bools, outer: Rows) -> Ints:
    """Time of the compilations inside of each row around them."""
    rows = np.flatnonzero(at_work & (outer < 0) & (events.duration != UNKNOWN))
    if not len(rows):
        return np.broadcast_to(np.int64(UNKNOWN), len(events))  # of any length, in eight bytes
    found = np.full(len(events), UNKNOWN, np.int64)
    rows = rows[np.lexsort((events.start[rows], events.track[rows]))]
    track, reached = NONE, 0
    for row, end in zip(rows.tolist(), events.end(rows).tolist(), strict=True):
        begin = int(events.start[row])
        # torch's row and ours of one compilation overlap, and neither need enclose the other
        if int(events.track[row]) == track:
            begin = max(begin, reached)
        track, reached = int(events.track[row]), max(end, begin)
        above = int(parent[row])
        while above >= 0:
            if not at_work[above]:
                found[above] = max(int(found[above]), 0) + reached - begin
            above = int(parent[above])
    return found


def _name_graphs(
    events: Events,
    parent: Rows,
    calls: Bools,
    known: Sequence[CompiledGraph],
    graph: Codes,
    ids: Interner,
) -> None:
    """A call outside of all regions is one of the only graph with its key."""
    homes: dict[str | None, set[str]] = defaultdict(set)
    for compiled_graph in known:
        homes[compiled_graph.key].add(compiled_graph.graph_id)
    named = np.zeros(len(events), np.bool_)
    for row in np.flatnonzero(calls & (graph == NULL)).tolist():
        home = homes.get(_key(events.names.name.texts[events.name[row]]), set())
        if len(home) == 1:
            graph[row], named[row] = ids.code(*home), True
    around = nearest(parent, named)
    inner = np.flatnonzero((around >= 0) & (graph == NULL))
    graph[inner] = graph[around[inner]]


def _key(call_name: str) -> str | None:
    said = _CALL.match(call_name)
    return said[1] if said and said[1] != "None" else None


def _read_calls(events: Events, parent: Rows, giver: Rows, calls: Bools, finder: _Finder) -> None:
    """Kernel of each op that a compiled graph called itself, and of work that it launched."""
    found, names = finder.found, events.names.name.texts
    rows, call = _of_calls(events, parent, giver, calls, found.compiling)
    kernels = np.full(len(events), NULL, np.int32)
    silent = set(np.flatnonzero(calls).tolist())
    for row, place in zip(rows.tolist(), call.tolist(), strict=True):
        name = _PREFIX.sub("", names[events.name[row]])
        kernel = finder.kernel(place, names[events.name[place]], int(found.graph[place]), name)
        kernels[row] = kernel
        own = bool(_OWN_KERNEL.match(name))
        if own or kernel != NULL:
            silent.discard(place)
        if own and (kernel == NULL or not found.stacks[kernel]):
            found.unsourced.append(name)
    # a graph that is known and has no kernels needs no lines
    known = {(graph.graph_id, graph.key) for graph in finder.graphs}
    for row in sorted(silent):
        name, graph = names[events.name[row]], int(found.graph[row])
        if (found.ids[graph] if graph >= 0 else None, _key(name)) not in known:
            found.unsourced.append(name)
    if (kernels != NULL).any():
        found.kernel, found.called = kernels, kernels != NULL


def _of_calls(
    events: Events, parent: Rows, giver: Rows, calls: Bools, compiling: Bools
) -> tuple[Ints, Ints]:
    """Ops right inside a call of a graph and work launched from one, in order; and the call."""
    is_op = events.roles("framework/op")
    above = nearest(parent, is_op | calls)
    ops = np.flatnonzero(is_op & (above >= 0) & ~compiling)
    ops = ops[calls[above[ops]]]
    around = nearest(parent, calls, include_self=True)
    work = np.flatnonzero(events.roles("hardware/") & (giver >= 0))
    work = work[around[giver[work]] >= 0]
    rows = np.concatenate((ops, work))
    call = np.concatenate((above[ops], around[giver[work]]))
    began = np.concatenate((events.start[ops], events.start[giver[work]]))
    order = np.lexsort((rows, began, call))
    return rows[order].astype(np.int64), call[order].astype(np.int64)


class _Finder:
    """Finds the kernel of a row by graph, name, and how often the call has run that name."""

    def __init__(
        self,
        events: Events,
        forward: Rows | None,
        known: Sequence[CompiledGraph],
        found: GraphLinks,
        owners: Owners,
    ) -> None:
        self.found = found
        self._owners, self._start, self._forward = owners, events.start, forward
        self.graphs = known
        self._by_key: dict[tuple[str, str | None], list[CompiledGraph]] = defaultdict(list)
        for graph in known:
            self._by_key[graph.graph_id, graph.key].append(graph)
        self._codes: dict[int, int] = {}
        self._call = NONE
        self._left: dict[str, Iterator[int]] = {}

    def kernel(self, call: int, call_name: str, graph: int, name: str) -> int:
        """Code of the kernel of the next row of a name in a call; NULL where it is unknown."""
        if call != self._call:
            self._call, self._left = call, self._kernels(_key(call_name), graph, call)
        return next(self._left.get(name, iter(())), NULL)

    def _kernels(self, key: str | None, graph: int, call: int) -> dict[str, Iterator[int]]:
        graphs = self._by_key.get((self.found.ids[graph] if graph >= 0 else "", key), [])
        graphs = in_force(graphs, int(self._start[call]))
        by_name: dict[str, list[int]] = defaultdict(list)
        if not key:
            # a compilation's forward and backward may call a library's kernels of one name
            backward = self._forward is not None and int(self._forward[call]) >= 0
            graphs = [graph for graph in graphs if graph.backward == backward] or graphs
        for compiled_graph in graphs[-1:] if key else graphs:
            for kernel in compiled_graph.kernels:
                by_name[kernel.row_name].append(self._code(kernel))
        return {name: iter(codes) for name, codes in by_name.items()}

    def _code(self, kernel: CompiledKernel) -> int:
        if id(kernel) not in self._codes:
            self._codes[id(kernel)] = len(self.found.kernels)
            self.found.kernels.append(kernel)
            self.found.stacks.append(kernel.stacks(self._owners))
        return self._codes[id(kernel)]


def give_sources(
    events: Events, parent: Rows, op: Rows, links: GraphLinks, sources: Sources
) -> None:
    """Let kernels, what they call and what that launches have the kernels' source lines.

    Args:
        events: The events.
        parent: Innermost event around each.
        op: Op of each hardware row.
        links: What `link_graphs` found; gains the rows that kernels called.
        sources: Changed in place.
    """
    if links.kernel is not None:
        _spread(links.kernel, events, parent, op)
        codes = []
        for stacks in links.stacks:
            codes.append(len(sources.stacks) if stacks else NULL)
            sources.stacks += stacks[:1]
        rows = np.flatnonzero(links.kernel != NULL)
        stack = np.array([*codes, NULL], np.int32)[links.kernel[rows]]
        rows, stack = rows[stack != NULL], stack[stack != NULL]
        sources.stack[rows] = stack
        sources.via[rows] = VIAS.index("compiled")
    own = events.named(lambda name: bool(_OWN_KERNEL.match(name))) & events.roles("framework/op")
    # what is known of the others is only where the compiled function was called
    sources.via[own & (sources.via == VIAS.index("line"))] = VIAS.index("call")


def _spread(kernel: Codes, events: Events, parent: Rows, op: Rows) -> None:
    """Give what a kernel calls, and the work of that, the kernel's code."""
    around = nearest(parent, kernel != NULL)
    inner = np.flatnonzero((around >= 0) & (kernel == NULL))
    kernel[inner] = kernel[around[inner]]
    work = np.flatnonzero(events.roles("hardware/") & (op >= 0) & (kernel == NULL))
    kernel[work] = kernel[op[work]]
