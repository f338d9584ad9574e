"""Links of a file's events, computed once, when the file is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_explorer.collectors.events import NULL, UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.linking.launches import (
    forwards,
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
from neuron_explorer.collectors.linking.steps import compiled, phases, steps_by_time
from neuron_explorer.collectors.memory import give_back

LINK_VIA = ("correlation", "external_id", "flow")
OPS = ("framework/op", "framework/autograd")

_NESTED = (
    "python/",
    "framework/op",
    "framework/annotation",
    "framework/autograd",
    "framework/module",
    "runtime/",
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
    sources: Sources


def link(events: Events, process_of_track: Rows, user_prefixes: tuple[str, ...] = ()) -> Links:
    """All links of a file's events.

    Args:
        events: The events, times repaired.
        process_of_track: Code of the process of each track.
        user_prefixes: Path prefixes that are the user's own code wherever they lie.
    """
    launch, hints, flows = launches(events), ops_by_external_id(events), launches_by_flow(events)
    pairs = forwards(events, process_of_track)
    events.forget_ids()
    give_back()
    nested = events.roles(*_NESTED) & (events.start != UNKNOWN)
    slack = _slack(events, nested)
    tree = nest(events.start, events.duration, events.track, nested, slack)
    give_back()
    hardware = events.roles("hardware/")
    parent, self_ns = tree.parent, tree.self_ns
    op_around = _op_around(events, tree.open_at_start, parent)
    del tree
    op, via = _ops(events, launch, op_around, hints)
    _follow_flows(events, flows, op_around, (launch, op, via))
    del op_around
    give_back()
    forward = _forward(parent, *pairs)
    sources = _sources(events, parent, forward, launch, op, user_prefixes)
    np.copyto(self_ns, UNKNOWN, where=~nested)
    giver = np.where(launch >= 0, launch, op)
    work = np.flatnonzero(hardware & (giver >= 0))
    phase = phases(events, parent, sources.module != NULL)
    phase[~nested] = NULL
    step, in_region = steps_by_time(events), compiled(events, parent)
    for column in (step, phase, in_region):
        column[work] = column[giver[work]]
    if forward is not None:
        by_op = np.flatnonzero(hardware & (op >= 0))
        forward[by_op] = forward[op[by_op]]
    return Links(
        parent=parent,
        launch=launch,
        op=op,
        forward=forward,
        via=via,
        self_ns=self_ns,
        step=step,
        phase=phase,
        compiled=in_region,
        sources=sources,
    )


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


def _forward(parent: Rows, backward_rows: Ints, forward_rows: Ints) -> Rows | None:
    """Forward op of each row that is a backward op or lies in one; None where none does."""
    if not len(backward_rows):
        return None
    forward = np.full(len(parent), NONE, np.int32)
    forward[backward_rows] = forward_rows
    giver = nearest(parent, forward >= 0, include_self=True)
    return np.where(giver >= 0, forward[giver], NONE)


def _sources(
    events: Events,
    parent: Rows,
    forward: Rows | None,
    launch: Rows,
    op: Rows,
    user_prefixes: tuple[str, ...],
) -> Sources:
    sources = host_sources(events, parent, user_prefixes)
    if forward is not None:
        inherit(sources, np.flatnonzero(forward >= 0), forward, "forward")
    by_op = np.flatnonzero(events.roles("hardware/") & (op >= 0))
    inherit(sources, by_op, op, "launch")
    by_launch = np.flatnonzero(launch >= 0)
    by_launch = by_launch[sources.stack[by_launch] == NULL]
    inherit(sources, by_launch, launch, "launch")
    return sources
