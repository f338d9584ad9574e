"""Modules by number, without keeping them alive, and where each stands in its model."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from torch.nn import Module

from neuron_explorer.collectors.capture.watched import (
    UNIDENTIFIED,
    first_argument,
    may_be_read,
)

_WRAPPED = {
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "OptimizedModule": "_orig_mod",
}
"""Class of a wrapper -> the name under which it holds the module it stands for."""

_MOST = 1 << 17
"""Modules told apart in a window; further ones are known by their class only."""


def _nothing() -> None:
    """Stands for the reference to a module that is gone."""


@dataclass
class _Place:
    """Where a module stands: below which root, by which path."""

    root: int
    path: str


@dataclass
class ModuleNames:
    """Numbers modules as they are called, and names them when all is over."""

    call: CodeType
    """Code of `Module.__call__`."""
    placed: dict[int, int] = field(default_factory=dict)
    """Number by `id()` of modules that live and whose place is known."""
    modules: list[Any] = field(default_factory=list)
    """Weak references by number; number `UNIDENTIFIED` is nothing's."""
    classes: list[str] = field(default_factory=list)
    places: list[_Place | None] = field(default_factory=list)
    stands_for: dict[int, int] = field(default_factory=dict)
    """Number of a wrapper -> number of the module inside it."""
    _numbers: dict[int, int] = field(default_factory=dict)
    """Number by `id()` of modules that live."""
    _alive: dict[int, weakref.KeyedRef[int, Any]] = field(default_factory=dict)
    """By `id()`, which the next module may get when one is gone."""
    _latest: dict[str, int] = field(default_factory=dict)
    """Class -> its module that was numbered last."""
    _walked: set[int] = field(default_factory=set)
    """Roots of models of several modules."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all modules; the containers stay, since others hold them."""
        for known in (self.placed, self._numbers, self._alive, self.stands_for, self._latest):
            known.clear()
        self._walked.clear()
        self.modules[:], self.classes[:], self.places[:] = [_nothing], [""], [None]

    def number(self, module: object) -> int:
        """Number of a module whose call has just begun on this thread."""
        with self._lock:
            number = self._known(module)
            if self.places[number] is None:
                frame = self._frame_of_the_call()
                if frame is not None and not self._is_inside(frame):
                    self._place(module, frame)
            self._note_place(module, number)
            return number

    def _frame_of_the_call(self) -> FrameType | None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not self.call:
            frame = frame.f_back
        return frame

    def _is_inside(self, frame: FrameType) -> bool:
        """Whether a call runs inside that of a module whose place is known."""
        outer = frame.f_back
        while outer is not None:
            watched = outer.f_code is self.call and may_be_read(outer)
            if watched and id(first_argument(outer)) in self.placed:
                return True
            outer = outer.f_back
        return False

    def _note_place(self, module: object, number: int) -> None:
        if self.places[number] is not None:
            self.placed[id(module)] = number

    def _known(self, module: Any) -> int:
        known = self._numbers.get(id(module))
        return self._add(module) if known is None else known

    def _add(self, module: Any) -> int:
        cls = type(module).__name__
        latest = self._latest.get(cls)
        if latest is not None and (len(self.modules) >= _MOST or self._is_over(latest)):
            number = latest
        else:
            number = len(self.modules)
            self.modules.append(None)
            self.classes.append(cls)
            self.places.append(None)
        reference = weakref.KeyedRef(module, self._forget, id(module))
        self.modules[number] = self._alive[id(module)] = reference
        self._numbers[id(module)] = self._latest[cls] = number
        return number

    def _forget(self, gone: weakref.KeyedRef[int, Any]) -> None:
        """A module is about to go; until this returns, no other one has its `id()`."""
        for known in (self.placed, self._numbers, self._alive):
            known.pop(gone.key, None)

    def _is_over(self, number: int) -> bool:
        """Whether a module is gone that had no name but its class: one made for one call."""
        place = self.places[number]
        named = place is not None and (place.path or number in self._walked)
        return not named and self.modules[number]() is None

    def _place(self, module: Any, frame: FrameType) -> None:
        """Name the whole model that a module called by no other belongs to.

        Its owner may be a module whose own methods run, though nobody called it: a
        `training_step`, an `encode`.
        """
        owners: list[Any] = []
        for owner in _callers(frame):
            if owner is not module and id(owner) not in map(id, owners):
                owners.append(owner)
        for owner in reversed(owners):
            if self._numbers.get(id(owner)) in self._walked:
                continue
            if any(inner is module for inner, _, _ in walk(owner)):
                self._walk(owner)
                return
        self._walk(module)

    def _walk(self, root: Any) -> None:
        """Give everything below a root its path, unless a root outside this one gave it one."""
        number = self._known(root)
        below = []
        for module, path, wrapped in walk(root):
            own = self._known(module)
            below.append((module, own, path))
            if wrapped is not None:
                self.stands_for[own] = self._known(wrapped)
        inside = {own for _, own, _ in below}
        if len(inside) > 1:
            self._walked.add(number)
        for module, own, path in below:
            place = self.places[own]
            if place is None or place.root in inside:
                self.places[own] = _Place(number, path)
            self._note_place(module, own)

    def labels(self, called: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Name and class of each number; what no root names has its class for a name."""
        self._find_late_ones()
        roots = self._roots(called)
        parents = [root for root in roots if root in self._walked]
        found = {}
        for number in called:
            place, cls = self.places[number], self._class_of(number)
            if number == UNIDENTIFIED:
                found[number] = ("unknown", "")
            elif place is None:
                found[number] = (cls, cls)
            elif not place.path:
                found[number] = (roots[place.root], cls)
            else:
                prefix = f"{roots[place.root]}." if len(parents) > 1 else ""
                found[number] = (prefix + place.path, cls)
        return found

    def _find_late_ones(self) -> None:
        """Walk again: a model may have got more modules since it was seen first."""
        if None not in self.places[1:]:
            return
        for number in list(self._walked):
            root = self.modules[number]()
            if root is not None:
                self._walk(root)

    def _roots(self, called: Sequence[int]) -> dict[int, str]:
        """Names of the roots of what was called: their classes, numbered where they are alike."""
        places = [self.places[number] for number in called]
        roots = list(dict.fromkeys(place.root for place in places if place is not None))
        classes = {root: self._class_of(root) for root in roots}
        alike, seen = Counter(classes.values()), Counter[str]()
        names = {}
        for root, cls in classes.items():
            names[root] = f"{cls}_{seen[cls]}" if alike[cls] > 1 else cls
            seen[cls] += 1
        return names

    def _class_of(self, number: int) -> str:
        inner = number
        while inner in self.stands_for:
            inner = self.stands_for[inner]
        return self.classes[inner]


def _callers(frame: FrameType) -> Iterator[Any]:
    """Modules whose methods run around a frame, innermost first."""
    outer = frame.f_back
    while outer is not None:
        owner = first_argument(outer) if may_be_read(outer) else None
        if issubclass(type(owner), Module):
            yield owner
        outer = outer.f_back


def walk(root: Any) -> Iterator[tuple[Any, str, Any]]:
    """Each module below a root once, as `named_modules()`: itself, its path, what it wraps.

    Wrappers have no part in a path. Nothing of the job's own code is run.
    """
    seen = set()
    waiting = [(root, "")]
    while waiting:
        module, path = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        inner_name = _WRAPPED.get(type(module).__name__)
        children = [(n, c) for n, c in module._modules.items() if c is not None]
        yield module, path, next((c for n, c in children if n == inner_name), None)
        for name, child in reversed(children):
            below = path if name == inner_name else f"{path}.{name}".removeprefix(".")
            waiting.append((child, below))
