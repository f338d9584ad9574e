"""FLOPs and bytes of every op row, and their split over the hardware work that op caused.

Rule: work takes the cost of the innermost op above it that has one. An op's cost is
divided over its work by duration, so it sums to the op's and is never counted twice; a
wrapper's cost is used only where no op inside it has a cost and work of its own. Bytes
that the trace states itself (copies, collectives) come before any formula.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_explorer.collectors.costs import Cost, op_cost
from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.interning import NULL, Codes, Interner
from neuron_explorer.collectors.linking import Links
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest

SEPARATOR = "\x01"
REPORTED = "reported"
NO_OP, GRAPH_REPLAY, INSIDE_COSTED_OP = "no_op", "graph_replay", "inside_costed_op"
WHY_UNLINKED = {
    NO_OP: "No framework op is known that caused this work.",
    GRAPH_REPLAY: "Replayed from a captured graph: the ops ran when it was captured.",
    INSIDE_COSTED_OP: "Its op has no cost, and the op around it is counted by its inner ops.",
}
"""Codes in `cost_note` of work that has no cost to take."""
_TO_DEVICE, _FROM_DEVICE = ("htod", "hosttodevice"), ("dtoh", "devicetohost")


@dataclass
class Costs:
    """One value a row; UNKNOWN or NULL where there is none."""

    flops: Ints
    read: Ints
    write: Ints
    family: Codes
    outputs: Codes
    via: Codes
    note: Codes
    families: Interner
    output_shapes: Interner
    vias: Interner
    notes: Interner


def attribute(events: Events, links: Links, reported: tuple[Ints, Ints, Ints]) -> Costs:
    """Costs of every op row and hardware row."""
    costs = _blank(len(events))
    ops = np.flatnonzero(events.roles("framework/op"))
    _cost_ops(events, ops, costs)
    _report(events, reported, costs)
    hardware = events.roles("hardware/")
    open_rows = hardware & (costs.via == NULL)
    _split(events, links, costs, open_rows)
    return costs


def _blank(rows: int) -> Costs:
    def unknown() -> Ints:
        return np.full(rows, UNKNOWN, np.int64)

    def null() -> Codes:
        return np.full(rows, NULL, np.int32)

    interners = (Interner(), Interner(), Interner(), Interner())
    return Costs(unknown(), unknown(), unknown(), null(), null(), null(), null(), *interners)


def _cost_ops(events: Events, ops: Ints, costs: Costs) -> None:
    """Cost each distinct (name, inputs) once and hand it to its rows."""
    if not len(ops):
        return
    keys = events.name[ops].astype(np.int64) << 32 | (events.inputs[ops] + 1)
    distinct, place = np.unique(keys, return_inverse=True)
    names, inputs = events.names.name.texts, events.names.inputs.texts
    found = [_cost(names[key >> 32], inputs, (key & 0xFFFFFFFF) - 1) for key in distinct.tolist()]
    _hand_out(costs, ops, found, place)


def _cost(name: str, inputs: list[str], code: int) -> Cost:
    parts = inputs[code].split(SEPARATOR) if code >= 0 else ["", "", "", ""]
    shapes, dtypes, strides, values = (part or None for part in parts)
    return op_cost(name, shapes, dtypes, strides, values)


def _hand_out(costs: Costs, rows: Ints, found: list[Cost], place: Ints) -> None:
    def numbers(field: str) -> Ints:
        values = [getattr(cost, field) for cost in found]
        return np.array([UNKNOWN if v is None else v for v in values], np.int64)[place]

    def codes(field: str, interner: Interner) -> Codes:
        values = [getattr(cost, field) for cost in found]
        return np.array([NULL if v is None else interner.code(v) for v in values], np.int32)[place]

    costs.flops[rows] = numbers("flops")
    costs.read[rows], costs.write[rows] = numbers("read_bytes"), numbers("write_bytes")
    costs.family[rows] = codes("family", costs.families)
    costs.outputs[rows] = codes("output_shapes", costs.output_shapes)
    costs.via[rows] = codes("via", costs.vias)
    costs.note[rows] = codes("note", costs.notes)


def _report(events: Events, reported: tuple[Ints, Ints, Ints], costs: Costs) -> None:
    """Bytes stated by the trace, for hardware rows; a host copy touches device memory once."""
    rows, read, write = reported
    chosen = events.roles("hardware/")[rows]
    rows, read, write = rows[chosen], read[chosen], write[chosen]
    memset = events.roles("hardware/memset")[rows]
    to_device = _named(events, _TO_DEVICE)[rows]
    from_device = _named(events, _FROM_DEVICE)[rows]
    costs.read[rows] = np.where(memset | to_device, 0, read)
    costs.write[rows] = np.where(from_device, 0, write)
    costs.via[rows] = costs.vias.code(REPORTED)
    for kind, family in (("memcpy", "copy"), ("memset", "fill"), ("collective", "collective")):
        of_kind = rows[events.roles(f"hardware/{kind}")[rows]]
        costs.family[of_kind] = costs.families.code(family)


def _named(events: Events, fragments: tuple[str, ...]) -> Bools:
    return events.named(
        lambda name: any(f in name.lower().replace("_", "").replace(" ", "") for f in fragments)
    )


def _split(events: Events, links: Links, costs: Costs, rows: Bools) -> None:
    moves = (costs.read > 0) | (costs.write > 0)
    priced = events.roles("framework/op") & (moves | (costs.flops > 0))
    above = nearest(links.parent, priced, include_self=True)
    linked = rows & (links.op >= 0)
    target = np.where(linked, above[links.op], NONE).astype(np.int32)
    direct = target == links.op
    covered = _ancestors(links.parent, target[linked & direct & (target >= 0)])
    climbed = linked & ~direct & (target >= 0)
    covered |= _ancestors(links.parent, target[climbed])
    refused = climbed & covered[target]
    target[refused] = NONE
    _divide(events, costs, np.flatnonzero(linked & (target >= 0)), target)
    _explain(events, links, costs, np.flatnonzero(rows & (target < 0)), refused)


def _ancestors(parent: Rows, rows: Rows) -> Bools:
    """All rows above the given ones."""
    found = np.zeros(len(parent), np.bool_)
    frontier = np.unique(parent[rows]) if len(rows) else rows
    while len(frontier := frontier[frontier >= 0]):
        frontier = frontier[~found[frontier]]
        found[frontier] = True
        frontier = np.unique(parent[frontier])
    return found


def _divide(events: Events, costs: Costs, rows: Ints, target: Rows) -> None:
    """Divide each target's cost over its rows by duration, to the last byte."""
    if not len(rows):
        return
    order = rows[np.argsort(target[rows], kind="stable")]
    op = target[order]
    duration = np.where(events.duration[order] == UNKNOWN, 0, events.duration[order])
    first = np.concatenate([[True], op[1:] != op[:-1]])
    group = np.cumsum(first) - 1
    total = np.bincount(group, duration)
    weight = np.where(total[group] > 0, duration, 1).astype(np.float64)
    running = np.cumsum(weight)
    before = (running - weight)[first][group]
    whole = np.bincount(group, weight)[group]
    low, high = (running - weight - before) / whole, (running - before) / whole
    high[np.concatenate([first[1:], [True]])] = 1.0
    low[~first] = high[np.flatnonzero(~first) - 1]
    for column in (costs.flops, costs.read, costs.write):
        amount = column[op]
        known = amount != UNKNOWN
        share = np.rint(amount * high) - np.rint(amount * low)
        column[order[known]] = share[known].astype(np.int64)
    for codes in (costs.family, costs.outputs, costs.via, costs.note):
        codes[order] = codes[op]


def _explain(events: Events, links: Links, costs: Costs, rows: Ints, refused: Bools) -> None:
    """Why the rest has no cost."""
    op, launch = links.op[rows], links.launch[rows]
    costs.note[rows] = np.where(op >= 0, costs.note[op], costs.notes.code(NO_OP))
    costs.family[rows] = np.where(op >= 0, costs.family[op], NULL)
    costs.outputs[rows] = np.where(op >= 0, costs.outputs[op], NULL)
    replayed = (launch >= 0) & events.roles("runtime/graph_launch")[launch]
    costs.note[rows[replayed]] = costs.notes.code(GRAPH_REPLAY)
    costs.note[np.flatnonzero(refused)] = costs.notes.code(INSIDE_COSTED_OP)
