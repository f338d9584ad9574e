"""Training step and phase of each event."""

from __future__ import annotations

import re

import numpy as np

from neuron_explorer.collectors.events import UNKNOWN, Bools, Events
from neuron_explorer.collectors.interning import NULL
from neuron_explorer.collectors.linking.nesting import NONE, Rows, blocks, nearest
from neuron_explorer.collectors.linking.sources import SmallCodes
from neuron_explorer.schema import PHASES

_STEP = re.compile(r"^ProfilerStep#(\d+)$")

RECOMPUTATION = "torch.utils.checkpoint"
"""Name of the annotation in which a capture saw a backward pass run a forward again."""
_RECOMPUTING = re.compile(
    r"(^|/)torch/utils/checkpoint\.py\(\d+\): (backward|recompute_fn|unpack|inner_unpack)$"
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


def phases(events: Events, parent: Rows, module: Rows) -> SmallCodes:
    """Code into `schema.PHASES` of each host row.

    Optimizer and input by torch's own annotations; backward by autograd's rows; forward
    is what runs in a module or has a sequence number; all else is `other`. Calls of
    torch.distributed have such a number too, and belong to no pass. An optimizer that calls
    a closure has a forward and a backward inside of its own.

    Args:
        events: The events.
        parent: Each row's parent; NONE without one.
        module: Code of the module that each row ran in; NULL without one.
    """
    optimizer = events.named(lambda name: name.startswith("Optimizer."))
    reading = events.roles("host/input_wait")
    numbered = np.zeros(len(events), np.bool_)
    numbered[events.sequence.rows] = True
    numbered &= ~events.backward & ~events.named(lambda name: name.startswith("c10d::"))
    code = {name: place for place, name in enumerate(PHASES)}
    found = np.full(len(events), code["other"], np.int8)
    autograd = _autograd(events)
    found[(module != NULL) | _under(parent, numbered)] = code["forward"]
    found[_under(parent, reading)] = code["input"]
    found[_under(parent, autograd)] = code["backward"]
    stepping = _begun_in(events, parent, optimizer)
    found[stepping & ~_of_closures(parent, optimizer, (numbered, autograd), module)] = code[
        "optimizer"
    ]
    return found


def _of_closures(
    parent: Rows, optimizer: Bools, passes: tuple[Bools, Bools], module: Rows
) -> Bools:
    """Rows of the passes that run inside an optimizer's step, which calls its closure.

    Its own ops may have sequence numbers too, so these alone do not tell: only where a node of
    autograd or another module than the optimizer's runs inside it, there was a closure.
    """
    numbered, autograd = passes
    around = nearest(parent, optimizer, include_self=True)
    inside = around != NONE
    of_pass: Bools = inside & _innermost_is(parent, autograd, optimizer)
    of_pass |= inside & (module != NULL) & (module != module[around])
    called = np.zeros(len(parent), np.bool_)
    called[around[of_pass]] = True
    of_pass |= inside & called[around] & _innermost_is(parent, numbered, optimizer)
    return of_pass


def _innermost_is(parent: Rows, marks: Bools, others: Bools) -> Bools:
    """Rows around which a mark lies closer than any of the others."""
    innermost = nearest(parent, marks | others, include_self=True)
    found: Bools = (innermost != NONE) & (marks & ~others)[innermost]
    return found


def recomputed(events: Events, parent: Rows) -> Bools:
    """Host rows of a forward that ran again inside a backward, by torch.utils.checkpoint.

    A capture writes down where that happens, else the Python frames say it. A backward pass
    that torch.utils.checkpoint runs itself, of what it has recomputed, is none.
    """
    backward = _autograd(events)
    again = events.named(lambda name: name == RECOMPUTATION or _RECOMPUTING.search(name))
    again &= events.roles("framework/annotation", "python/frame")
    if not again.any():
        return again
    again &= nearest(parent, backward) != NONE
    innermost = nearest(parent, again | backward, include_self=True)
    # place -1, no such row, must find False
    return np.append(again, False)[innermost]


def _autograd(events: Events) -> Bools:
    return events.backward | events.named(lambda name: name.startswith("autograd::engine"))


def _begun_in(events: Events, parent: Rows, marks: Bools) -> Bools:
    """Rows that began while a mark around them ran.

    A step that a hook of the optimizer begins lies under the optimizer's row, and outlasts it.
    """
    around = nearest(parent, marks, include_self=True)
    inside = np.flatnonzero(around != NONE)
    begun: Bools = np.zeros(len(events), np.bool_)
    mark = around[inside]
    open_ = events.duration[mark] == UNKNOWN
    begun[inside] = open_ | (events.start[inside] <= events.end(mark))
    return begun


def _under(parent: Rows, marks: Bools) -> Bools:
    inside: Bools = nearest(parent, marks, include_self=True) != NONE
    return inside
