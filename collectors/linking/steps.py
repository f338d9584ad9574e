"""Training step and phase of each event."""

from __future__ import annotations

import re

import numpy as np

from neuron_explorer.collectors.events import UNKNOWN, Bools, Events
from neuron_explorer.collectors.linking.nesting import NONE, Rows, blocks, nearest
from neuron_explorer.collectors.linking.sources import SmallCodes
from neuron_explorer.schema import PHASES

_STEP = re.compile(r"^ProfilerStep#(\d+)$")
_COMPILED = re.compile(
    r"^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFxGraph|CompiledFunction"
    r"|Pregraph bytecode|## Call .* with compiled)"
)


def steps_by_time(events: Events) -> Rows:
    """Number of the `ProfilerStep#n` that each row began in; NONE outside of all."""
    numbers = np.array([_step_number(text) for text in events.names.name.texts] + [NONE], np.int32)
    found = np.full(len(events), NONE, np.int32)
    marks = np.flatnonzero(events.roles("framework/annotation"))
    marks = marks[(numbers[events.name[marks]] != NONE) & (events.start[marks] != UNKNOWN)]
    if not len(marks):
        return found
    marks = marks[np.argsort(events.start[marks], kind="stable")]
    begins, ends, step = events.start[marks], events.end(marks), numbers[events.name[marks]]
    for block in blocks(len(events)):
        start = events.start[block]
        place = np.searchsorted(begins, start, side="right") - 1
        inside = (place >= 0) & (start != UNKNOWN)
        inside &= (start < ends[place]) | (start == begins[place])
        found[block][inside] = step[place[inside]]
    return found


def _step_number(text: str) -> int:
    found = _STEP.match(text)
    return int(found[1]) if found and len(found[1]) < 10 else NONE


def phases(events: Events, parent: Rows, in_module: Bools) -> SmallCodes:
    """Code into `schema.PHASES` of each host row.

    Optimizer and input by torch's own annotations; backward by autograd's rows; forward
    is what runs in a module or has a sequence number; all else is `other`.
    """
    optimizer = events.named(lambda name: name.startswith("Optimizer."))
    reading = events.named(lambda name: name.startswith("enumerate(DataLoader)"))
    autograd = events.backward | events.named(lambda name: name.startswith("autograd::engine"))
    numbered = np.zeros(len(events), np.bool_)
    numbered[events.sequence.rows] = True
    numbered &= ~events.backward
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
