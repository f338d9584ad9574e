"""Modules that ran in a window, by their names in the model, and forwards that ran again.

torch's own hooks for all modules would do, but torch.compile guards on them: a compiled model
would be compiled anew. So calls of `nn.Module.__call__` are watched from outside.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch.utils.checkpoint
from torch.nn import Module

from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.capture.companions import Remark
from neuron_explorer.collectors.capture.watched import (
    UNIDENTIFIED,
    Calls,
    Identify,
    Watch,
    WatchedFunction,
)
from neuron_explorer.collectors.interning import Codes, Column
from neuron_explorer.collectors.linking.steps import RECOMPUTATION
from neuron_explorer.collectors.recorded import RECORDED

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

_NO_MODULE = -1
"""Stands for the number of a module, for calls that are of none."""

_MODULE = "framework/module"


class ModuleCalls:
    """Companion that names the modules whose calls a `Watch` wrote down.

    The watch does nothing by itself: whoever records lines has to serve it.
    """

    def __init__(self) -> None:
        self._names = ModuleNames()
        self._remarks: list[Remark] = []
        call = getattr(Module, "_wrapped_call_impl", Module.__call__).__code__
        again = [WatchedFunction(code, _nobody) for code in recomputing_code()]
        self.watch = Watch([WatchedFunction(call, _identify(call, self._names)), *again])
        self._is_module = np.array([True] + [False] * len(again))

    def start(self) -> None:
        """Begin a window: modules are numbered anew."""
        self._names.clear()

    def stop(self) -> None:
        """Nothing to end: the watch ends with the lines."""

    def rows(self, clock: Alignment) -> pa.Table:
        """A row for each call of a module, and for each backward that runs a forward again."""
        names = self._names
        self._remarks = _remarks(self.watch.failures)
        threads = [_Rows(c, self._is_module) for c in self.watch.take() if len(c.start_ns)]
        called = dict.fromkeys(n for rows in threads for n in np.unique(rows.number).tolist())
        labels = names.labels([n for n in called if n != _NO_MODULE])
        labels[_NO_MODULE] = (RECOMPUTATION, "")
        tables = [rows.table(clock, labels, names.stands_for) for rows in threads]
        names.clear()
        return pa.concat_tables([RECORDED.empty_table(), *tables])

    def facts(self) -> Mapping[str, object]:
        return {}

    def remarks(self) -> Sequence[Remark]:
        return self._remarks


def _remarks(failures: Sequence[str]) -> list[Remark]:
    return [("module_unnamed", failures[0], len(failures))] if failures else []


def _identify(call: CodeType, names: ModuleNames) -> Identify:
    """Numbers modules by their calls; every call of a module pays for it."""
    own, number, numbers, modules = call.co_varnames[0], names.number, names.numbers, names.modules
    places, variable, of_frame = names.places, _get_variable, own.encode()

    def identify(frame: FrameType, outermost: bool) -> int:  # noqa: FBT001 - the protocol's
        module = frame.f_locals[own] if variable is None else variable(frame, of_frame)
        known = numbers.get(id(module), UNIDENTIFIED)
        if modules[known]() is module and (not outermost or places[known] is not None):
            return known
        return number(module, frame if outermost else None)

    return identify


def _nobody(_frame: FrameType, _outermost: bool) -> int:  # noqa: FBT001 - the protocol's
    return UNIDENTIFIED


def recomputing_code() -> Iterator[CodeType]:
    """Code that torch.utils.checkpoint runs only to run a forward again."""
    found = {
        code.co_qualname: code
        for function in (
            torch.utils.checkpoint.CheckpointFunction.backward,
            torch.utils.checkpoint._checkpoint_without_reentrant_generator,
        )
        for code in _codes(function.__code__)
    }
    for name, code in found.items():
        if name.endswith((".backward", ".recompute_fn")):
            yield code


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def first_argument(frame: FrameType) -> object:
    """Value of a frame's first argument, `self` in a method; None where there is none.

    Before Python 3.13 `f_locals` keeps all local values alive until the frame ends, or its next
    trace event comes: 3.12 has another way, 3.11 must leave frames alone that it does not trace.
    """
    code = frame.f_code
    if not code.co_argcount:
        return None
    name = code.co_varnames[0]
    if _get_variable is None:
        return frame.f_locals.get(name)
    try:
        return _get_variable(frame, name.encode())
    except NameError:
        return None


_PYTHON = tuple(sys.version_info[:2])


def _variable_getter() -> Any:
    # 3.13 has a light f_locals of its own, and 3.11 knows no other way
    if _PYTHON != (3, 12):
        return None
    getter = ctypes.pythonapi.PyFrame_GetVarString
    getter.argtypes, getter.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.py_object
    return getter


_get_variable = _variable_getter()
_LIGHT_LOCALS = _PYTHON >= (3, 12)


def _nothing() -> None:
    """Stands for the reference to a module that is gone."""


@dataclass
class _Place:
    """Where a module stands: below which root, by which path."""

    root: int
    path: str


@dataclass
class ModuleNames:
    """Modules by number, without keeping them alive, and where each stands in its model."""

    modules: list[Any] = field(default_factory=list)
    """Weak references by number; number `UNIDENTIFIED` is nothing's."""
    classes: list[str] = field(default_factory=list)
    places: list[_Place | None] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    """Number by `id()`, which the next module may get when one is gone."""
    stands_for: dict[int, int] = field(default_factory=dict)
    """Number of a wrapper -> number of the module inside it."""
    _latest: dict[str, int] = field(default_factory=dict)
    """Class -> its module that was numbered last."""
    _walked: set[int] = field(default_factory=set)
    """Roots of models of several modules."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all modules; the containers stay, since others hold them."""
        for known in (self.numbers, self.stands_for, self._latest, self._walked):
            known.clear()
        self.modules[:], self.classes[:], self.places[:] = [_nothing], [""], [None]

    def number(self, module: object, frame: FrameType | None) -> int:
        """Number of a module.

        Args:
            module: The module that is called.
            frame: Where that is, if no other module's call runs on the thread.
        """
        known = self._known(module)
        if frame is not None and self.places[known] is None:
            with self._lock:
                self._place(module, frame)
        return known

    def _known(self, module: Any) -> int:
        known = self.numbers.get(id(module))
        if known is None or self.modules[known]() is not module:
            with self._lock:
                return self._add(module)
        return known

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
        self.modules[number] = weakref.ref(module)
        self.numbers[id(module)] = self._latest[cls] = number
        return number

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
            if self.numbers.get(id(owner)) in self._walked:
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
            below.append((own, path))
            if wrapped is not None:
                self.stands_for[own] = self._known(wrapped)
        inside = {own for own, _ in below}
        if len(inside) > 1:
            self._walked.add(number)
        for own, path in below:
            place = self.places[own]
            if place is None or place.root in inside:
                self.places[own] = _Place(number, path)

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
        owner = first_argument(outer) if _LIGHT_LOCALS or outer.f_trace else None
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


class _Rows:
    """Columns of the calls of one thread."""

    def __init__(self, calls: Calls, is_module: npt.NDArray[np.bool_]) -> None:
        self.thread = calls.thread
        self.start = np.frombuffer(calls.start_ns, np.int64)
        self.end = np.frombuffer(calls.end_ns, np.int64)
        caller = np.frombuffer(calls.caller, np.int64)
        module = is_module[np.frombuffer(calls.function, np.int32)]
        self.number = np.where(module, np.frombuffer(calls.number, np.int64), _NO_MODULE)
        self.around = np.where(caller < 0, _NO_MODULE, self.number[caller])
        """Number of the module whose call is right around each."""

    def table(
        self, clock: Alignment, labels: Mapping[int, tuple[str, str]], wrapped: Mapping[int, int]
    ) -> pa.Table:
        """Rows of `RECORDED`; what a wrapper wraps has none of its own inside it."""
        distinct, place = np.unique(self.number, return_inverse=True)
        around, place_around = np.unique(self.around, return_inverse=True)
        inner = np.array([wrapped.get(n, _NO_MODULE) for n in around.tolist()], np.int64)
        keep = (self.number != inner[place_around]) | (self.number == _NO_MODULE)
        start, end = clock.to_torch(self.start[keep]), clock.to_torch(self.end[keep])
        said = [labels[n] for n in distinct.tolist()]
        roles = ["framework/annotation" if n == _NO_MODULE else _MODULE for n in distinct.tolist()]
        known = {
            "role": _text(place[keep], roles),
            "name": _text(place[keep], [name for name, _ in said]),
            "start_ns": pa.array(start),
            "duration_ns": pa.array(end - start),
            "tid": pa.array(np.full(len(start), self.thread, np.int64)),
            "module_class": _text(place[keep], [cls or None for _, cls in said]),
        }
        nothing = {f.name: pa.nulls(len(start), f.type) for f in RECORDED if f.name not in known}
        columns = known | nothing
        return pa.table([columns[name] for name in RECORDED.names], schema=RECORDED)


def _text(codes: Codes, texts: Sequence[str | None]) -> Column:
    found: Column = pc.take(pa.array(texts, pa.string()), pa.array(codes.tolist(), pa.int32()))
    return found
