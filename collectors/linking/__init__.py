"""Links of a file's events, computed once, when the file is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.interning import NULL, Codes
from neuron_explorer.collectors.linking.launches import forwards, launches, ops_by_external_id
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest, nest
from neuron_explorer.collectors.linking.sources import Sources, host_sources, inherit
from neuron_explorer.collectors.linking.steps import compiled, phases, steps_by_time, through

LINK_VIA = ("correlation", "external_id", "time")

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
    forward: Rows
    via: Codes
    """Code into `LINK_VIA`."""
    self_ns: Ints
    step: Ints
    phase: np.ndarray[tuple[int], np.dtype[np.int8]]
    compiled: Bools
    compiled_known: Bools
    sources: Sources


def link(events: Events, pid: Rows, user_prefixes: tuple[str, ...] = ()) -> Links:
    """All links of a file's events.

    Args:
        events: The events, times repaired.
        pid: Code of the process of each row.
        user_prefixes: Path prefixes that are the user's own code wherever they lie.
    """
    nested = events.roles(*_NESTED) & (events.start != UNKNOWN)
    tree = nest(events.start, events.end, events.track, nested, _slack(events, nested))
    hardware = events.roles("hardware/")
    op_around = _op_around(events, tree.open_at_start, tree.parent)
    launch = launches(events)
    op, via = _ops(events, launch, op_around)
    forward = _inherited(tree.parent, forwards(events, pid))
    sources = host_sources(events, tree.parent, user_prefixes)
    inherit(sources, forward >= 0, forward, "forward")
    giver = np.where(launch >= 0, launch, op)
    inherit(sources, hardware & (op >= 0), op, "launch")
    inherit(sources, hardware & (sources.source == NULL), giver, "launch")
    step = steps_by_time(events)
    phase = phases(events, tree.parent, sources.module != NULL)
    in_region = compiled(events, tree.parent)
    return Links(
        parent=tree.parent,
        launch=launch,
        op=op,
        forward=np.where(hardware & (op >= 0), forward[op], forward).astype(np.int32),
        via=via,
        self_ns=np.where(nested, tree.self_ns, UNKNOWN),
        step=through(step, launch, op, hardware),
        phase=through(phase.astype(np.int64), launch, op, hardware).astype(np.int8),
        compiled=through(in_region.astype(np.int64), launch, op, hardware) > 0,
        compiled_known=nested | (hardware & (giver >= 0)),
        sources=sources,
    )


def _slack(events: Events, nested: Bools) -> int:
    """1 us where all times are whole microseconds, as old exporters rounded them; else 0."""
    start, duration = events.start[nested], events.duration[nested]
    whole = not (start % 1000).any() and not (duration[duration != UNKNOWN] % 1000).any()
    return 1000 if whole and len(start) else 0


def _op_around(events: Events, opened: Rows, parent: Rows) -> Rows:
    """Innermost framework op that ran when each host row began."""
    is_op = events.roles("framework/op", "framework/autograd")
    above = nearest(parent, is_op, include_self=True)
    found = np.where(opened >= 0, above[opened], NONE).astype(np.int32)
    higher, end = nearest(parent, is_op), events.end
    rows = np.flatnonzero(found >= 0)
    while len(rows):
        rows = rows[end[found[rows]] < events.start[rows]]
        found[rows] = higher[found[rows]]
        rows = rows[found[rows] >= 0]
    return found


def _ops(events: Events, launch: Rows, op_around: Rows) -> tuple[Rows, Codes]:
    hardware = events.roles("hardware/")
    caller = events.roles("runtime/", "memory/", "host/")
    op = np.where(caller, op_around, NONE).astype(np.int32)
    launched = hardware & (launch >= 0)
    op[launched] = op_around[launch[launched]]
    via = np.where(launched, LINK_VIA.index("correlation"), NULL).astype(np.int32)
    hinted = ops_by_external_id(events, hardware)
    if _hints_agree(hinted, op, launched):
        rows = hardware & (op < 0) & (hinted >= 0)
        op[rows] = hinted[rows]
        via[rows & ~launched] = LINK_VIA.index("external_id")
    return op, via


def _hints_agree(hinted: Rows, op: Rows, launched: Bools) -> bool:
    both = launched & (hinted >= 0) & (op >= 0)
    return bool(both.any()) and float((hinted[both] == op[both]).mean()) >= _AGREEMENT


def _inherited(parent: Rows, value: Rows) -> Rows:
    """A row's own value, else the nearest ancestor's."""
    giver = nearest(parent, value >= 0, include_self=True)
    return np.where(giver >= 0, value[giver], NONE).astype(np.int32)
