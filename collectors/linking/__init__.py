"""Links of a file's events, computed once, when the file is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neuron_explorer.collectors.events import NULL, UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.linking.collectives import HOST_COLLECTIVE, host_collectives
from neuron_explorer.collectors.linking.forwards import forwards
from neuron_explorer.collectors.linking.frames import USUAL, Owners
from neuron_explorer.collectors.linking.graphs import (
    GraphLinks,
    compiled,
    give_sources,
    link_graphs,
    settle_compilations,
)
from neuron_explorer.collectors.linking.kernels import CompiledGraph
from neuron_explorer.collectors.linking.launches import (
    launches,
    launches_by_flow,
    ops_by_external_id,
)
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest, nest
from neuron_explorer.collectors.linking.sources import (
    SmallCodes,
    Sources,
    host_sources,
    inherit,
)
from neuron_explorer.collectors.linking.steps import phases, recomputed, steps_by_time
from neuron_explorer.collectors.memory import give_back
from neuron_explorer.schema import PHASES

LINK_VIA = ("correlation", "external_id", "flow", "order")
OPS = ("framework/op", "framework/autograd")

_NESTED = (
    "python/",
    "framework/op",
    "framework/annotation",
    "framework/autograd",
    "framework/module",
    "runtime/",
    "compiler/compile",
    "compiler/recompile",
    "compiler/stage",
    "compiler/cache_lookup",
    "memory/",
    "host/slice",
    "host/instant",
    "host/overhead",
    "host/input_wait",
    "host/gc",
)
_AGREEMENT = 0.9
"""External ids are trusted where they name the op that correlation names this often."""


@dataclass
class Links:
    """One value a row; rows are named by their place in the file, NONE = no such row."""

    parent: Rows
    launch: Rows
    op: Rows
    forward: Rows | None
    """None where the trace has no backward op."""
    via: SmallCodes
    """Code into `LINK_VIA`."""
    self_ns: Ints
    """UNKNOWN for rows that nest in nothing."""
    step: Rows
    """Number of the step; NONE outside of all."""
    phase: SmallCodes
    """Code into `schema.PHASES`; NULL where it means nothing."""
    compiled: Bools
    recomputed: Bools
    """Forward work that ran again inside a backward; where `phase` means something."""
    graphs: GraphLinks
    sources: Sources


def link(
    events: Events,
    process_of_track: Rows,
    owners: Owners = USUAL,
    compiled_graphs: Sequence[CompiledGraph] = (),
) -> Links:
    """All links of a file's events.

    Args:
        events: The events, times repaired.
        process_of_track: Code of the process of each track.
        owners: Whose code it is where the usual rules do not say.
        compiled_graphs: Graphs that a capture saw being compiled.
    """
    ties = _ties(events, process_of_track)
    parent, launch, op, forward = ties.parent, ties.launch, ties.op, ties.forward
    again = recomputed(events, parent)
    sources = _sources(events, parent, (forward, launch, op), again, owners)
    give_back()
    giver = np.where(launch >= 0, launch, op)
    work = np.flatnonzero(events.roles("hardware/", HOST_COLLECTIVE) & (giver >= 0))
    graphs = link_graphs(events, parent, forward, giver, compiled_graphs, owners)
    give_sources(events, parent, op, graphs, sources)
    phase = phases(events, parent, sources.module)
    phase[graphs.compiling] = PHASES.index("compile")
    phase[~ties.nested] = NULL
    step, in_region = steps_by_time(events), compiled(events, parent)
    for column in (step, phase, in_region, again):
        column[work] = column[giver[work]]
    _settle_forwards(events, forward, op, again)
    del giver, work
    give_back()
    return Links(
        parent=parent,
        launch=launch,
        op=op,
        forward=forward,
        via=ties.via,
        self_ns=ties.self_ns,
        step=step,
        phase=phase,
        compiled=in_region,
        recomputed=again,
        graphs=graphs,
        sources=sources,
    )


@dataclass(frozen=True)
class _Ties:
    """Rows that each row belongs to, and which of them nest."""

    parent: Rows
    launch: Rows
    op: Rows
    forward: Rows | None
    via: SmallCodes
    self_ns: Ints
    nested: Bools


def _ties(events: Events, process_of_track: Rows) -> _Ties:
    launch, hints, flows = launches(events), ops_by_external_id(events), launches_by_flow(events)
    pairs = forwards(events, process_of_track)
    events.forget_ids()
    give_back()
    nested = events.roles(*_NESTED) & (events.start != UNKNOWN)
    slack = _slack(events, nested)
    tree = nest(events.start, events.duration, events.track, nested, slack)
    give_back()
    parent, self_ns = tree.parent, tree.self_ns
    settle_compilations(events, parent)
    op_around = _op_around(events, tree.open_at_start, parent)
    del tree
    op, via = _ops(events, launch, op_around, hints)
    _follow_flows(events, flows, op_around, (launch, op, via))
    del op_around
    _ask_collectives(events, process_of_track, (op, via))
    give_back()
    np.copyto(self_ns, UNKNOWN, where=~nested)
    return _Ties(parent, launch, op, _forward(parent, *pairs), via, self_ns, nested)


def _slack(events: Events, nested: Bools) -> int:
    """1 us where all times are whole microseconds, as old exporters rounded them; else 0."""
    start, duration = events.start[nested], events.duration[nested]
    whole = not (start % 1000).any() and not (duration[duration != UNKNOWN] % 1000).any()
    return 1000 if whole and len(start) else 0


def _op_around(events: Events, opened: Rows, parent: Rows) -> Rows:
    """Innermost framework op that ran when each host row began."""
    is_op = events.roles(*OPS)
    above = nearest(parent, is_op, include_self=True)
    found = np.where(opened >= 0, above[opened], NONE)
    del above
    rows = np.flatnonzero(found >= 0).astype(np.int32)
    higher = nearest(parent, is_op)
    while len(rows):
        rows = rows[events.end(found[rows]) < events.start[rows]]
        found[rows] = higher[found[rows]]
        rows = rows[found[rows] >= 0]
    return found


def _ops(
    events: Events, launch: Rows, op_around: Rows, hints: tuple[Rows, Rows]
) -> tuple[Rows, SmallCodes]:
    op = np.where(events.roles("runtime/", "memory/", "host/"), op_around, NONE)
    launched = np.flatnonzero(launch >= 0)
    op[launched] = op_around[launch[launched]]
    via = np.full(len(events), NULL, np.int8)
    via[launched] = LINK_VIA.index("correlation")
    rows, hinted = hints
    known = op[rows] >= 0
    if known.any() and (hinted == op[rows])[known].mean() >= _AGREEMENT:
        rows, hinted = rows[~known], hinted[~known]
        op[rows] = hinted
        via[rows[launch[rows] < 0]] = LINK_VIA.index("external_id")
    return op, via


def _follow_flows(
    events: Events,
    flows: tuple[Rows, Rows],
    op_around: Rows,
    links: tuple[Rows, Rows, SmallCodes],
) -> None:
    """Link what no correlation id does along flows: to a runtime call, or straight to an op."""
    launch, op, via = links
    work, host = flows
    free = (launch[work] < 0) & (op[work] < 0)
    work, host = work[free], host[free]
    is_op = events.roles(*OPS)[host]
    launch[work] = np.where(is_op, NONE, host)
    op[work] = np.where(is_op, host, op_around[host])
    via[work] = LINK_VIA.index("flow")


def _ask_collectives(
    events: Events, process_of_track: Rows, links: tuple[Rows, SmallCodes]
) -> None:
    """Link collectives that ran on host threads to the ops that asked for them."""
    op, via = links
    rows, asking = host_collectives(events, op, process_of_track)
    op[rows], via[rows] = asking, LINK_VIA.index("order")


def _forward(parent: Rows, backward_rows: Ints, forward_rows: Ints) -> Rows | None:
    """Forward op of each row that is a backward op or lies in one; None where none does."""
    if not len(backward_rows):
        return None
    forward = np.full(len(parent), NONE, np.int32)
    forward[backward_rows] = forward_rows
    giver = nearest(parent, forward >= 0, include_self=True)
    return np.where(giver >= 0, forward[giver], NONE)


def _settle_forwards(events: Events, forward: Rows | None, op: Rows, again: Bools) -> None:
    """Take the forward from what runs again, and give hardware work that of its op."""
    if forward is None:
        return
    # it lies in a backward op, but is a forward's
    forward[again] = NONE
    by_op = np.flatnonzero(events.roles("hardware/") & (op >= 0))
    forward[by_op] = forward[op[by_op]]


def _sources(
    events: Events,
    parent: Rows,
    givers: tuple[Rows | None, Rows, Rows],
    again: Bools,
    owners: Owners,
) -> Sources:
    forward, launch, op = givers
    sources = host_sources(events, parent, owners)
    if forward is not None:
        # the backward of a reentrant checkpoint stands where the checkpoint does; any other one
        # runs again what is not its own forward
        checkpoint = np.append(events.named(lambda name: name == "CheckpointFunction"), False)
        sources.module_in_backward |= again & ~checkpoint[forward]
        inherit(sources, np.flatnonzero(forward >= 0), forward, "forward")
    by_op = np.flatnonzero(events.roles("hardware/", HOST_COLLECTIVE) & (op >= 0))
    inherit(sources, by_op, op, "launch")
    by_launch = np.flatnonzero(launch >= 0)
    by_launch = by_launch[sources.stack[by_launch] == NULL]
    inherit(sources, by_launch, launch, "launch")
    return sources
