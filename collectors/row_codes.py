"""Codes of the event table's texts: what stands in a row for a name, a frame, a cost.

Each column of codes ends with one place for the code NULL (-1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from neuron_explorer.collectors.events import UNKNOWN, Events, Ints
from neuron_explorer.collectors.interning import NULL, Codes, Column
from neuron_explorer.collectors.linking.sources import Sources
from neuron_explorer.collectors.pricing import SEPARATOR, PriceBook

PRICE_TEXTS = {
    "family": "family",
    "output_shapes": "output_shapes",
    "via": "cost_via",
    "note": "cost_note",
}
"""Text field of a Cost -> column."""
INPUT_COLUMNS = ("input_shapes", "input_dtypes", "input_strides", "input_values")


@dataclass
class Track:
    """Process and thread of a row, as the trace wrote them and as numbers."""

    pid_raw: str
    tid_raw: str
    thread_name: str | None = None

    @property
    def pid(self) -> int | None:
        return _integer(self.pid_raw)

    @property
    def tid(self) -> int | None:
        return _integer(self.tid_raw)


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if abs(number) < 1 << 63 else None


@dataclass
class RowCodes:
    """The distinct values of one file, and their codes."""

    events: Events
    sources: Sources
    book: PriceBook
    tracks: list[Track]

    @cached_property
    def texts(self) -> dict[str, Column]:
        names, sources = self.events.names, self.sources
        roles = [text.split("/") for text in names.role.texts]
        frames = [f for stack in sources.stacks for f in (stack.source, stack.user) if f]
        lists: dict[str, list[str]] = {
            "name": names.name.texts,
            "category": names.category.texts,
            "layer": list(dict.fromkeys(layer for layer, _ in roles)),
            "kind": list(dict.fromkeys(kind for _, kind in roles)),
            "file": list(dict.fromkeys(frame.file for frame in frames)),
            "function": list(dict.fromkeys(frame.function for frame in frames)),
            "stack": [stack.text for stack in sources.stacks],
            "module": list(dict.fromkeys(m.name for m in sources.modules)),
            "class": list(dict.fromkeys(m.cls for m in sources.modules)),
            "thread": list(dict.fromkeys(t.thread_name for t in self.tracks if t.thread_name)),
            "pid_raw": list(dict.fromkeys(t.pid_raw for t in self.tracks)),
            "tid_raw": list(dict.fromkeys(t.tid_raw for t in self.tracks)),
        }
        lists |= {name: names.recorded[name].texts for name in ("reason", "queue_kind")}
        for name in PRICE_TEXTS:
            values = (getattr(cost, name) for cost in self.book.prices)
            lists[name] = list(dict.fromkeys(value for value in values if value))
        parts = [text.split(SEPARATOR) for text in names.inputs.texts]
        for place, name in enumerate(INPUT_COLUMNS):
            lists[name] = list(dict.fromkeys(part[place] for part in parts if part[place]))
        return {name: pa.array(texts, pa.string()) for name, texts in lists.items()}

    def _codes(self, kind: str, values: list[str | None]) -> Codes:
        place = {text: code for code, text in enumerate(self.texts[kind].to_pylist())}
        codes = [NULL if value is None else place.get(value, NULL) for value in values]
        return np.array([*codes, NULL], np.int32)

    @cached_property
    def input_parts(self) -> list[Codes]:
        parts = [text.split(SEPARATOR) for text in self.events.names.inputs.texts]
        return [
            self._codes(name, [part[place] for part in parts])
            for place, name in enumerate(INPUT_COLUMNS)
        ]

    @cached_property
    def price_texts(self) -> dict[str, Codes]:
        prices = self.book.prices
        return {n: self._codes(n, [getattr(cost, n) for cost in prices]) for n in PRICE_TEXTS}

    @cached_property
    def price_numbers(self) -> dict[str, Ints]:
        return {name: self.book.column(name) for name in ("flops", "read_bytes", "write_bytes")}

    @cached_property
    def layer(self) -> Codes:
        return self._codes("layer", [t.split("/")[0] for t in self.events.names.role.texts])

    @cached_property
    def kind(self) -> Codes:
        return self._codes("kind", [t.split("/")[1] for t in self.events.names.role.texts])

    @cached_property
    def pid(self) -> Ints:
        return _lookup([track.pid for track in self.tracks])

    @cached_property
    def tid(self) -> Ints:
        return _lookup([track.tid for track in self.tracks])

    @cached_property
    def pid_raw(self) -> Codes:
        return self._codes("pid_raw", [t.pid_raw if t.pid is None else None for t in self.tracks])

    @cached_property
    def tid_raw(self) -> Codes:
        return self._codes("tid_raw", [t.tid_raw if t.tid is None else None for t in self.tracks])

    @cached_property
    def thread(self) -> Codes:
        return self._codes("thread", [track.thread_name for track in self.tracks])

    @cached_property
    def frames(self) -> dict[str, tuple[Codes, Codes, Codes]]:
        """File, line and function of each stack's source and user frame."""
        found = {}
        for whose in ("source", "user"):
            frames = [getattr(stack, whose) for stack in self.sources.stacks]
            lines = [*(frame.line if frame else NULL for frame in frames), NULL]
            found[whose] = (
                self._codes("file", [frame and frame.file for frame in frames]),
                np.array(lines, np.int32),
                self._codes("function", [frame and frame.function for frame in frames]),
            )
        return found

    @cached_property
    def module(self) -> Codes:
        return self._codes("module", [module.name for module in self.sources.modules])

    @cached_property
    def module_class(self) -> Codes:
        return self._codes("class", [module.cls for module in self.sources.modules])


def _lookup(values: list[int | None]) -> Ints:
    return np.array([*(UNKNOWN if v is None else v for v in values), UNKNOWN], np.int64)
