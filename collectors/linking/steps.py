"""Training step and phase of each event."""

from __future__ import annotations

import re

import numpy as np

from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest
from neuron_explorer.schema import PHASES

_STEP = re.compile(r"^ProfilerStep#(\d+)$")
_COMPILED = re.compile(
    r"^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFxGraph|CompiledFunction"
    r"|Pregraph bytecode|## Call .* with compiled)"
)


def steps_by_time(events: Events) -> Ints:
    """Number of the `ProfilerStep#n` that each row began in; UNKNOWN outside of all."""
    texts = events.names.name.texts
    numbers = np.array([_step_number(text) for text in texts] + [UNKNOWN], np.int64)[events.name]
    marks = np.flatnonzero((numbers != UNKNOWN) & events.roles("framework/annotation"))
    found = np.full(len(events), UNKNOWN, np.int64)
    if not len(marks):
        return found
    marks = marks[np.argsort(events.start[marks], kind="stable")]
    place = np.searchsorted(events.start[marks], events.start, side="right") - 1
    mark = marks[np.maximum(place, 0)]
    inside = (place >= 0) & (events.start < events.end[mark]) & (events.start != UNKNOWN)
    inside |= events.start == events.start[mark]
    found[inside] = numbers[mark[inside]]
    return found


def _step_number(text: str) -> int:
    found = _STEP.match(text)
    return int(found[1]) if found else UNKNOWN


def through(values: Ints, launch: Rows, op: Rows, work: Bools) -> Ints:
    """A host value handed to hardware work: its launch's, else its op's, else its own."""
    giver = np.where(launch >= 0, launch, op)
    rows = np.flatnonzero(work & (giver >= 0))
    handed = values.copy()
    handed[rows] = values[giver[rows]]
    return handed


def phases(
    events: Events, parent: Rows, in_module: Bools
) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """Code into `schema.PHASES` of each host row.

    Optimizer and input by torch's own annotations; backward by autograd's rows; forward
    is what runs in a module or has a sequence number; all else is `other`.
    """
    optimizer = events.named(lambda name: name.startswith("Optimizer."))
    reading = events.named(lambda name: name.startswith("enumerate(DataLoader)"))
    autograd = events.backward | events.named(lambda name: name.startswith("autograd::engine"))
    numbered = (events.sequence != UNKNOWN) & ~events.backward
    code = {name: place for place, name in enumerate(PHASES)}
    found = np.full(len(events), code["other"], np.int8)
    found[in_module | _under(parent, numbered)] = code["forward"]
    found[_under(parent, reading)] = code["input"]
    found[_under(parent, autograd)] = code["backward"]
    found[_under(parent, optimizer)] = code["optimizer"]
    return found


def compiled(events: Events, parent: Rows) -> Bools:
    """Host rows inside a region that torch.compile made."""
    regions = events.named(lambda name: bool(_COMPILED.match(name))) & events.roles("framework/")
    return _under(parent, regions)


def _under(parent: Rows, marks: Bools) -> Bools:
    inside: Bools = nearest(parent, marks, include_self=True) != NONE
    return inside
