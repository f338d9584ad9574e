"""The cost of every distinct op call of a file, worked out once each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from neuron_explorer.collectors.costs import Cost, op_cost
from neuron_explorer.collectors.costs.lists import list_dtype
from neuron_explorer.collectors.costs.meta import meta_cost
from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.interning import NULL, Codes
from neuron_explorer.collectors.linking import OPS, Links
from neuron_explorer.collectors.linking.nesting import Rows

SEPARATOR = "\x01"
META_SHARE = 0.01
"""An op without a formula is asked of torch only where it has this share of the time:
torch takes seconds to load."""

_NEIGHBOURS = 50

Inputs = tuple[str | None, str | None, str | None, str | None]


@dataclass
class PriceBook:
    """All distinct costs, and which of them each op row has."""

    prices: list[Cost]
    price: Codes
    """Code into `prices` of each op row; NULL for all other rows."""

    def code(self, cost: Cost) -> int:
        """Enter a cost that no op call has."""
        self.prices.append(cost)
        return len(self.prices) - 1

    def column(self, field: str) -> Ints:
        """A number of each price, UNKNOWN where it has none; one more place for code NULL."""
        values = [getattr(cost, field) for cost in self.prices]
        return np.array([UNKNOWN if v is None else v for v in values] + [UNKNOWN], np.int64)

    def moves_or_computes(self) -> Bools:
        """Which prices are more than nothing; one more place for code NULL."""
        columns = (self.column(field) for field in ("flops", "read_bytes", "write_bytes"))
        found: Bools = np.logical_or.reduce([column > 0 for column in columns])
        return found


def price_ops(events: Events, links: Links) -> PriceBook:
    """Cost of each distinct (name, inputs) among the op rows."""
    ops = np.flatnonzero(events.roles(*OPS)).astype(np.int32)
    keys = events.name[ops].astype(np.int64) << 32 | (events.inputs[ops] + 1)
    distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
    reader = _Calls(events, ops)
    prices = [reader.cost(key, row) for key, row in zip(distinct.tolist(), first, strict=True)]
    _ask_torch(prices, distinct, place, reader, _weights(events, links, ops))
    price = np.full(len(events), NULL, np.int32)
    price[ops] = place
    return PriceBook(prices, price)


class _Calls:
    """Recorded op calls, by the key of their name and inputs."""

    def __init__(self, events: Events, ops: Rows) -> None:
        self._names, self._inputs = events.names.name.texts, events.names.inputs.texts
        self._events, self._ops = events, ops

    def call(self, key: int) -> tuple[str, Inputs]:
        return self._names[key >> 32], self._texts((key & 0xFFFFFFFF) - 1)

    def cost(self, key: int, place: int) -> Cost:
        name, inputs = self.call(key)
        cost = op_cost(name, *inputs)
        if "list_dtype_not_recorded" in (cost.note or ""):
            dtype = list_dtype(cost.output_shapes, self._neighbours(place))
            cost = op_cost(name, *inputs, list_dtype=dtype) if dtype else cost
        return cost

    def _texts(self, code: int) -> Inputs:
        if code < 0:
            return None, None, None, None
        shapes, dtypes, strides, values = self._inputs[code].split(SEPARATOR)
        return shapes or None, dtypes or None, strides or None, values or None

    def _neighbours(self, place: int) -> Iterator[tuple[str | None, str | None]]:
        """Shapes and dtypes of the ops of the thread that follow, then of those before."""
        events, ops = self._events, self._ops
        track = events.track[ops[place]]
        around: Iterable[int] = (
            *range(place + 1, min(place + 1 + _NEIGHBOURS, len(ops))),
            *range(place - 1, max(place - 1 - _NEIGHBOURS, -1), -1),
        )
        for other in around:
            if events.track[ops[other]] == track:
                yield self._texts(int(events.inputs[ops[other]]))[:2]


def _weights(events: Events, links: Links, ops: Rows) -> Ints:
    """Time each op is answerable for: of its hardware work, or its own on a CPU-only trace."""
    work = np.flatnonzero(events.roles("hardware/") & (links.op >= 0))
    if not len(work):
        return np.maximum(links.self_ns[ops], 0)
    duration = np.maximum(events.duration[work], 0)
    place = np.searchsorted(ops, links.op[work])
    return np.bincount(place, duration, len(ops)).astype(np.int64)


def _ask_torch(
    prices: list[Cost], distinct: Ints, place: Ints, reader: _Calls, weight: Ints
) -> None:
    """Where torch is installed, price weighty ops that have no formula by their meta kernel."""
    unknown = [number for number, cost in enumerate(prices) if cost.note == "no_formula"]
    if not unknown or find_spec("torch") is None:
        return
    share = np.bincount(place, weight, len(prices)) / max(int(weight.sum()), 1)
    for number in unknown:
        if share[number] >= META_SHARE:
            name, inputs = reader.call(int(distinct[number]))
            answer = meta_cost(name, *inputs)
            prices[number] = answer if answer.via else prices[number]
