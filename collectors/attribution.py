"""Which cost each hardware event takes, and how an op's cost is divided over its work.

Rule: work takes the cost of the innermost op above it that has one. An op's cost is
divided over its work by duration, so it sums to the op's and is never counted twice; a
wrapper's cost is used only where no op inside it has a cost and work of its own. What the
trace states itself (bytes of copies and collectives, a device's own counts of a kernel) comes
before any formula.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neuron_explorer.collectors.costs import Cost
from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.interning import NULL, Codes
from neuron_explorer.collectors.linking import Links
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest
from neuron_explorer.collectors.pricing import PriceBook, price_ops

_TO_DEVICE, _FROM_DEVICE = ("htod", "hosttodevice"), ("dtoh", "devicetohost")
_REPORTED_FAMILY = {"memcpy": "copy", "memset": "fill", "collective": "collective"}

Reported = tuple[Ints, Ints, Ints, Ints]
"""Rows, and the FLOPs and bytes read and written that the trace itself states of each."""


@dataclass
class Costs:
    """Prices of op rows, and the shares that hardware rows have in them."""

    book: PriceBook
    rows: Rows
    """Hardware rows, in order; the columns below have one place for each."""
    price: Codes
    """Code into the book's prices."""
    flops: Ints
    read: Ints
    write: Ints


@dataclass
class _Work:
    """Hardware rows and what is known of each, place by place."""

    rows: Rows
    op: Rows
    launch: Rows
    duration: Ints
    numbers: dict[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Events, links: Links) -> _Work:
        rows = np.flatnonzero(events.roles("hardware/")).astype(np.int32)
        work = cls(rows, links.op[rows], links.launch[rows], np.maximum(events.duration[rows], 0))
        for name in ("flops", "read_bytes", "write_bytes"):
            work.numbers[name] = np.full(len(rows), UNKNOWN, np.int64)
        return work


def attribute(events: Events, links: Links, reported: Reported) -> Costs:
    """Costs of every op row and hardware row."""
    book, work = price_ops(events, links), _Work.of(events, links)
    price, counted = _report(events, reported, work, book)
    _price_kernels(events, links, work, book, price)
    free = np.flatnonzero(price == NULL)
    target, refused = _targets(events, links, book, work.op[free])
    _divide(book, work, free, target, price)
    _explain(events, book, work, free[target == NONE], refused[target == NONE], price)
    _name_counted(book, counted, price)
    numbers = work.numbers
    return Costs(
        book, work.rows, price, numbers["flops"], numbers["read_bytes"], numbers["write_bytes"]
    )


def _report(
    events: Events, reported: Reported, work: _Work, book: PriceBook
) -> tuple[Codes, npt.NDArray[np.intp]]:
    """Take what the trace states; a host copy touches device memory on one side only.

    Returns:
        Price of each place, and the places of the kernels that the device counted itself:
        their op's formula gives what it did not count.
    """
    price = np.full(len(work.rows), NULL, np.int32)
    chosen = events.roles("hardware/")[reported[0]]
    rows, flops, read, write = (column[chosen] for column in reported)
    place = np.searchsorted(work.rows, rows)
    only_writes = events.roles("hardware/memset") | _copies(events, _TO_DEVICE)
    only_reads = _copies(events, _FROM_DEVICE)
    work.numbers["flops"][place] = flops
    work.numbers["read_bytes"][place] = np.where(only_writes[rows], 0, read)
    work.numbers["write_bytes"][place] = np.where(only_reads[rows], 0, write)
    for kind, family in _REPORTED_FAMILY.items():
        of_kind = place[events.roles(f"hardware/{kind}")[rows]]
        if len(of_kind):
            price[of_kind] = book.code(Cost(None, None, None, None, family, "reported", None))
    return price, place[price[place] == NULL]


def _name_counted(book: PriceBook, counted: npt.NDArray[np.intp], price: Codes) -> None:
    """Say of kernels that their device counted them; the family stays that of their op."""
    for code in np.unique(price[counted]).tolist():
        family = None if code == NULL else book.prices[code].family
        alike = counted[price[counted] == code]
        price[alike] = book.code(Cost(None, None, None, None, family, "reported", None))


def _price_kernels(
    events: Events, links: Links, work: _Work, book: PriceBook, price: Codes
) -> None:
    """Take what the compiled graph says that a kernel moves, where no formula knows better."""
    graphs = links.graphs
    if graphs.kernel is None or graphs.called is None:
        return
    codes = [NULL] * len(graphs.kernels)
    for number, kernel in enumerate(graphs.kernels):
        read, write = kernel.read_bytes, kernel.write_bytes
        if read is not None or write is not None:
            codes[number] = book.code(Cost(None, read, write, None, None, "compiler", None))
    code = np.where(graphs.called, np.array([*codes, NULL], np.int32)[graphs.kernel], NULL)
    known = code[work.rows] != NULL
    price[known] = code[work.rows[known]]
    for name in ("read_bytes", "write_bytes"):
        column = work.numbers[name]
        column[known] = _or_else(column[known], book.column(name)[price[known]])
    ops = np.flatnonzero((code != NULL) & events.roles("framework/op"))
    unknown = (book.column("read_bytes") == UNKNOWN)[book.price[ops]]
    book.price[ops[unknown]] = code[ops[unknown]]


def _copies(events: Events, directions: tuple[str, ...]) -> Bools:
    def goes(name: str) -> bool:
        plain = name.lower().replace("_", "").replace(" ", "")
        return any(direction in plain for direction in directions)

    return events.roles("hardware/memcpy") & events.named(goes)


def _targets(events: Events, links: Links, book: PriceBook, op: Rows) -> tuple[Rows, Bools]:
    """Op whose cost the work of each op shares, and whether it is counted by others."""
    priced = book.moves_or_computes()[book.price] & events.roles("framework/op")
    above = nearest(links.parent, priced, include_self=True)
    target = np.where(op >= 0, above[op], NONE)
    climbed = (target != op) & (target >= 0)
    covered = _ancestors(links.parent, target[~climbed & (target >= 0)])
    covered |= _ancestors(links.parent, target[climbed])
    refused = climbed & covered[target]
    return np.where(refused, NONE, target), refused


def _ancestors(parent: Rows, rows: Rows) -> Bools:
    """All rows above the given ones."""
    found = np.zeros(len(parent), np.bool_)
    frontier = np.unique(parent[rows]) if len(rows) else rows
    while len(frontier := frontier[frontier >= 0]):
        frontier = frontier[~found[frontier]]
        found[frontier] = True
        frontier = np.unique(parent[frontier])
    return found


def _divide(
    book: PriceBook, work: _Work, free: npt.NDArray[np.intp], target: Rows, price: Codes
) -> None:
    """Divide each target's cost over its work by duration, to the last byte."""
    linked = np.flatnonzero(target >= 0)
    if not len(linked):
        return
    linked = linked[np.argsort(target[linked], kind="stable")]
    place = free[linked]
    low, high = _brackets(work.duration[place], target[linked])
    price[place] = book.price[target[linked]]
    for name, column in work.numbers.items():
        amount = book.column(name)[price[place]]
        share = (np.rint(amount * high) - np.rint(amount * low)).astype(np.int64)
        column[place] = _or_else(column[place], np.where(amount == UNKNOWN, UNKNOWN, share))


def _or_else(stated: Ints, computed: Ints) -> Ints:
    return np.where(stated == UNKNOWN, computed, stated)


def _brackets(duration: Ints, group: Rows) -> tuple[npt.NDArray[np.float64], ...]:
    """Where the share of each begins and ends in its group's whole, 0 to 1; groups in runs."""
    first = np.append(True, group[1:] != group[:-1])
    number = np.cumsum(first) - 1
    total = np.bincount(number, duration)[number]
    weight = np.where(total > 0, duration, 1).astype(np.float64)
    whole = np.bincount(number, weight)[number]
    running = np.cumsum(weight)
    before = (running - weight)[first][number]
    high = (running - before) / whole
    high[np.append(first[1:], True)] = 1.0
    low = np.where(first, 0.0, np.append(0.0, high[:-1]))
    return low, high


def _explain(
    events: Events,
    book: PriceBook,
    work: _Work,
    place: npt.NDArray[np.intp],
    refused: Bools,
    price: Codes,
) -> None:
    """Say why the rest has no cost: its op's reason, or that there is no op."""

    def code(note: str) -> int:
        return book.code(Cost(None, None, None, None, None, None, note))

    op, launch = work.op[place], work.launch[place]
    replayed = (launch >= 0) & events.roles("runtime/graph_launch")[launch]
    why = np.where(op >= 0, book.price[op], NULL)
    why[refused] = code("counted_inside")
    why[why == NULL] = code("no_op")
    why[replayed] = code("graph_replay")
    price[place] = why
