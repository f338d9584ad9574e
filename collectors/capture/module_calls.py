"""Modules that ran in a window, by their names in the model, and forwards that ran again.

torch's own hooks for all modules would do, but torch.compile guards on them: a compiled model
would be compiled anew. So calls of `nn.Module.__call__` are watched from outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from torch.nn import Module

from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.capture.companions import Remark
from neuron_explorer.collectors.capture.module_names import ModuleNames
from neuron_explorer.collectors.capture.recomputation import recomputing_code
from neuron_explorer.collectors.capture.watched import (
    UNIDENTIFIED,
    Calls,
    Watch,
    WatchedFunction,
)
from neuron_explorer.collectors.events import Ints
from neuron_explorer.collectors.interning import Codes, Column
from neuron_explorer.collectors.linking.steps import RECOMPUTATION
from neuron_explorer.collectors.recorded import RECORDED

_NO_MODULE = -1
"""Stands for the number of a module, for calls that are of none."""

_MODULE = "framework/module"

_CALL, _INNER, _AGAIN = range(3)
"""A module's call; the part of it after which it ends; a forward that runs again."""


class ModuleCalls:
    """Companion that names the modules whose calls a `Watch` wrote down.

    The watch does nothing by itself: whoever records lines has to serve it.

    Args:
        beside_frames: Whether torch records Python frames as well. Of its frame of a call and
            ours, both would then end at about the same time, in either order; ours has to lie
            inside, so it ends where what `Module.__call__` calls does.
    """

    def __init__(self, *, beside_frames: bool = False) -> None:
        call = getattr(Module, "_wrapped_call_impl", None)
        code = (call or Module.__call__).__code__
        self._names = names = ModuleNames(code)
        self._remarks: list[Remark] = []
        called = WatchedFunction(code, names.number, delegates=call is not None)
        inner = [Module._call_impl.__code__] if beside_frames and call is not None else []
        again = list(recomputing_code())
        others = [WatchedFunction(code, _nobody) for code in [*inner, *again]]
        self.watch = Watch([called, *others], names.placed)
        self._kinds = np.array([_CALL] + [_INNER] * len(inner) + [_AGAIN] * len(again))

    def start(self) -> None:
        """Begin a window: modules are numbered anew."""
        self._names.clear()

    def stop(self) -> None:
        """Nothing to end: the watch ends with the lines."""

    def rows(self, clock: Alignment) -> pa.Table:
        """A row for each call of a module, and for each backward that runs a forward again."""
        names = self._names
        self._remarks = _remarks(self.watch.failures)
        threads = [_Rows(c, self._kinds) for c in self.watch.take() if len(c.start_ns)]
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


def _nobody(_owner: object) -> int:
    return UNIDENTIFIED


class _Rows:
    """Columns of the calls of one thread."""

    def __init__(self, calls: Calls, kinds: Ints) -> None:
        self.thread = calls.thread
        kind = kinds[np.frombuffer(calls.function, np.int32)]
        caller = np.frombuffer(calls.caller, np.int64)
        start, end = (np.array(times, np.int64) for times in (calls.start_ns, calls.end_ns))
        number = np.array(calls.number, np.int64)
        number[kind == _AGAIN] = _NO_MODULE
        inner = np.flatnonzero((kind == _INNER) & (caller >= 0))
        end[caller[inner]] = end[inner]
        number[inner] = number[caller[inner]]
        around = np.where(caller < 0, _NO_MODULE, number[caller])
        keep = kind != _INNER
        self.start, self.end, self.number = start[keep], end[keep], number[keep]
        self.around = around[keep]
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
