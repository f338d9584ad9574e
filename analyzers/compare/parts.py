"""The parts of a step on both sides, each with its counterpart."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from neuron_explorer.analyzers.compare.lines import Line, LinePair, pair_lines
from neuron_explorer.analyzers.compare.noise import Amount, Control, Machine, machine
from neuron_explorer.analyzers.compare.sampling import ENDING, PYTHON, Cells, Sample
from neuron_explorer.analyzers.sources import SourceTexts

HOST, DEVICE, WAIT = "host", "device", "wait"
"""Where a time was spent: on the host at work, on a device, on the host waiting for a device."""

Queue = tuple[str, str]
"""Device and queue as the trace has them."""
Names = Mapping[Queue, Queue]

_ABOVE = 12
"""Lines above a line that are looked at, at most."""
_LEAST_SHARE = 0.002
"""Share of the time on its side that a part needs to say something about the machine."""


@dataclass(frozen=True)
class Place:
    """What the parts of a step have in common that are counted together."""

    line: int | None
    """Number of its line pair; None where no line is known."""
    module: str | None
    name: str
    shapes: str | None
    dtypes: str | None
    device: str | None
    queue: str | None
    kernel: str | None
    measure: str
    """host, device or wait."""


@dataclass(frozen=True)
class Part:
    """One place before and after."""

    place: Place
    base: Amount
    new: Amount
    same: bool
    """Whether it is the same work: the same code, calls and shapes on both sides."""
    adjusted: Amount
    """The new one at the speed that the machine had in the base."""
    control: Control
    """What it says of the machine; nothing where it is not the same work, or is too small."""


@dataclass(frozen=True)
class Parts:
    """All of them, and what the same work among them says of the machine."""

    parts: Sequence[Part]
    pairs: Sequence[LinePair]
    machines: Mapping[str, Machine]
    """By measure."""


def parts_of(base: Sample, new: Sample) -> Parts:
    """Every part of both samples once."""
    texts = SourceTexts(base.trace), SourceTexts(new.trace)
    pairs = pair_lines(
        _lines(base, texts[0]), _lines(new, texts[1]), texts[0].known, texts[1].known
    )
    names = _queue_names(base.device, new.device)
    ours = _places(base, _numbers(pairs, "base"), names[0])
    theirs = _places(new, _numbers(pairs, "new"), names[1])
    bare = [
        _bare(place, ours.get(place, Amount()), theirs.get(place, Amount()), pairs)
        for place in dict.fromkeys([*ours, *theirs])
    ]
    witnesses = {measure: _witnesses(bare, measure) for measure in (HOST, DEVICE)}
    machines = {measure: _machine(found) for measure, found in witnesses.items()}
    heard = {part.place for found in witnesses.values() for part in found}
    return Parts([_judged(part, machines, heard) for part in bare], pairs, machines)


def _places(side: Sample, numbers: Mapping[Line, int], names: Names) -> dict[Place, Amount]:
    found: dict[Place, Amount] = {}
    # the host of a dry run plays the device, so its times say nothing
    host = [] if side.modelled else [(HOST, side.host)]
    sources = [*host, *([] if side.device is None else [(DEVICE, side.device)])]
    for measure, cells in sources:
        for row in cells.table.to_pylist():
            line = line_of(row)
            device, queue = names.get((row["device"], row["queue"]), (None, None))
            place = Place(
                line=None if line is None else numbers[line],
                module=row["module"],
                name=row["name"] or "",
                shapes=row["input_shapes"],
                dtypes=row["input_dtypes"],
                device=device,
                queue=queue,
                kernel=row["kernel"],
                measure=WAIT if row["waits"] else measure,
            )
            amount = Amount(
                row["own_ns"],
                row["variance"],
                row["positions"],
                row["events"],
                row["regular"],
                # beside a device it is there that ops write
                0.0 if side.accelerated else row["written_bytes"] or 0.0,
            )
            found[place] = found.get(place, Amount()) + amount
    return found


def _queue_names(base: Cells | None, new: Cells | None) -> tuple[Names, Names]:
    """What each queue is called here, so that the same one has the same name on both sides.

    Threads have other numbers in each process, and a job may run on another device: what only one
    side has goes with what only the other one has, by how much it did.
    """
    ours, theirs = _queues(base), _queues(new)
    names = {queue: queue for queue in ours}
    left = [queue for queue in ours if queue not in theirs]
    others = {queue: queue for queue in theirs}
    fresh = [queue for queue in theirs if queue not in ours]
    others |= {mine: queue for queue, mine in zip(left, fresh, strict=False)}
    return names, others


def _queues(device: Cells | None) -> list[Queue]:
    """The one that did most comes first."""
    totals: dict[Queue, float] = {}
    for row in [] if device is None else device.table.to_pylist():
        queue = str(row["device"]), str(row["queue"])
        totals[queue] = totals.get(queue, 0.0) + row["own_ns"]
    return sorted(totals, key=lambda queue: (-totals[queue], queue))


def line_of(row: Mapping[str, object]) -> Line | None:
    """The line a cell points at, without its text."""
    file, number = row["source_file"], row["source_line"]
    if not isinstance(file, str) or not isinstance(number, int):
        return None
    return Line(file, number, str(row["source_function"] or ""))


def _lines(side: Sample, texts: SourceTexts) -> Iterator[Line]:
    tables = [side.host.table, *([] if side.device is None else [side.device.table])]
    found = {line for table in tables for row in table.to_pylist() if (line := line_of(row))}
    last: dict[str, int] = {}
    for line in sorted(found):
        begin = max(last.get(line.file, 0) + 1, line.number - _ABOVE)
        above = (texts.line(line.file, number) for number in range(begin, line.number))
        code = tuple(text for text in above if text and not text.startswith(("#", "def ", "@")))
        yield replace(line, text=texts.line(line.file, line.number), above=code)
        last[line.file] = line.number


def _numbers(pairs: Iterable[LinePair], side: str) -> dict[Line, int]:
    found = {}
    for number, pair in enumerate(pairs):
        line: Line | None = getattr(pair, side)
        if line is not None:
            found[replace(line, text=None, above=())] = number
    return found


def _bare(place: Place, base: Amount, new: Amount, pairs: Sequence[LinePair]) -> Part:
    pair = None if place.line is None else pairs[place.line]
    edited = pair is not None and (pair.touched if place.name == PYTHON else pair.edited)
    # what runs now and then, such as a collector pause, runs as it likes
    alike = abs(base.events - new.events) < 1e-9 or not (base.regular and new.regular)
    return Part(place, base, new, alike and not edited, new, Control())


def _witnesses(parts: Iterable[Part], measure: str) -> list[Part]:
    """The same work, as far as it takes time enough to be measured."""
    there = [part for part in parts if part.place.measure == measure]
    least = _LEAST_SHARE * sum(part.base.ns for part in there)
    work = (part for part in there if part.same and part.place.name != ENDING)
    return [p for p in work if min(p.base.ns, p.new.ns) > 0 and p.base.ns >= least]


def _machine(witnesses: Iterable[Part]) -> Machine:
    return machine([(part.base.ns, part.new.ns) for part in witnesses])


def _judged(part: Part, machines: Mapping[str, Machine], witnesses: Container[Place]) -> Part:
    """A wait lasts as long as the device needs, whatever the host's speed is."""
    seen = machines.get(part.place.measure, Machine())
    base = part.base
    heard = part.place in witnesses
    control = seen.deviation(base.ns, part.new.ns) if heard and seen.known else Control()
    return replace(part, adjusted=part.new.at(seen.ratio), control=control)
