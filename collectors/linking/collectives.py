"""Collectives that ran on host threads -> the op that asked for them.

Gloo and MPI leave no id that joins the two, but a process group starts its collectives in the
order in which it was asked for them. So each takes the oldest op of its kind that is still free,
began no later, and names its shapes. Where two groups run the same collective on equal shapes
at once, the two may be exchanged.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from neuron_explorer.collectors.events import UNKNOWN, Events
from neuron_explorer.collectors.linking.nesting import Rows

HOST_COLLECTIVE = "host/collective"

_NO_LETTER = re.compile(r"[^a-z0-9]")
_SUFFIX = re.compile(r"(base|coalesced|intotensor|tensor|anysource|single)+$")
_SEPARATOR = "\x01"

Shapes = frozenset[tuple[int, ...]]


def host_collectives(events: Events, op: Rows, process_of_track: Rows) -> tuple[Rows, Rows]:
    """(collectives on host threads, the op that asked for each), where no op is known yet.

    Args:
        events: All events.
        op: Op of each row as far as it is known.
        process_of_track: Code of the process of each track.
    """
    works = np.flatnonzero(events.roles(HOST_COLLECTIVE) & (events.start != UNKNOWN))
    if not len(works):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    is_op = events.named(lambda name: name.startswith("c10d::")) & events.roles("framework/op")
    is_op[op[works[op[works] >= 0]]] = False
    waiting: dict[tuple[int, str], list[int]] = defaultdict(list)
    names, processes = events.names.name.texts, process_of_track[events.track]
    for row in _in_order(events, np.flatnonzero(is_op & (events.start != UNKNOWN))):
        waiting[int(processes[row]), kind_of(names[events.name[row]])].append(row)
    pairs = []
    for work in _in_order(events, works[op[works] < 0]):
        queue = waiting[int(processes[work]), kind_of(names[events.name[work]])]
        asked = _asked(events, work, queue)
        if asked is not None:
            queue.remove(asked)
            pairs.append((work, asked))
    found = np.array(pairs, np.int32).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def kind_of(name: str) -> str:
    """`allreduce` of `gloo:all_reduce`, `c10d::allreduce_` and their variants."""
    bare = _NO_LETTER.sub("", name.rpartition(":")[2].lower())
    return _SUFFIX.sub("", bare)


def _in_order(events: Events, rows: npt.NDArray[np.integer]) -> Iterator[int]:
    yield from rows[np.argsort(events.start[rows], kind="stable")].tolist()


def _asked(events: Events, work: int, queue: list[int]) -> int | None:
    wanted = _shapes(events, work)
    for row in queue:
        if events.start[row] > events.start[work]:
            return None
        known = _shapes(events, row)
        if wanted is None or known is None or wanted <= known:
            return row
    return None


def _shapes(events: Events, row: int) -> Shapes | None:
    code = int(events.inputs[row])
    return _read(events.names.inputs.texts[code]) if code >= 0 else None


@lru_cache(maxsize=4096)
def _read(inputs: str) -> Shapes | None:
    """Shapes of all tensors, also those in lists; None where they are not recorded or cut."""
    try:
        dims = json.loads(inputs.partition(_SEPARATOR)[0])
    except ValueError:
        return None
    return frozenset(_flat(dims))


def _flat(dims: object) -> Iterator[tuple[int, ...]]:
    if not isinstance(dims, list):
        return
    if dims and all(isinstance(size, int) for size in dims):
        yield tuple(dims)
        return
    for inner in dims:
        yield from _flat(inner)
