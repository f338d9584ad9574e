"""Line events of `sys.monitoring` (Python >= 3.12), on model code only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from neuron_explorer.collectors.capture.tapes import (
    CHUNK,
    CODE_SHIFT,
    ENTER,
    KIND_SHIFT,
    WATCHED,
    Budget,
    CodeTable,
    Tape,
)
from neuron_explorer.collectors.capture.watched import Watch, first_argument
from neuron_explorer.errors import UsageError

monitoring: Any = getattr(sys, "monitoring", None)
"""None before Python 3.12."""

Callback = Callable[..., object]

TOOL_NAME = "neuron_explorer"
TOOL_IDS = (4, 3)
"""Ids that Python leaves to nobody in particular."""

_ENTER = ENTER << KIND_SHIFT


class EventLines:
    """Writes tapes of all threads, from line, call and return events.

    Only calls are watched everywhere; each foreign code object is switched off at its first
    call, each model code object gets line and return events of its own.
    """

    def __init__(self, codes: CodeTable, budget: Budget, watch: Watch) -> None:
        self.tapes: list[Tape] = []
        self._codes = codes
        self._calls = watch
        self._budget = budget
        self._local = threading.local()
        self._begun: dict[int, Tape] = {}
        """Tapes of threads that ran before, by `get_ident()`, until they are taken over."""
        self._tool = -1

    def start(self) -> None:
        """Begin.

        Raises:
            UsageError: Every id for tools of this kind is in use.
        """
        self._tool = _free_tool()
        event = monitoring.events
        self._inside = event.LINE | event.PY_RETURN | event.PY_YIELD
        for which, callback in self._callbacks().items():
            monitoring.register_callback(self._tool, getattr(event, which), callback)
        self._seed()
        for function in self._calls.functions:
            begins = event.CALL if function.delegates else 0  # frames that begin are seen anyhow
            monitoring.set_local_events(self._tool, function.code, begins | event.PY_RETURN)
        everywhere = event.PY_START | event.PY_RESUME | event.PY_THROW | event.PY_UNWIND
        monitoring.set_events(self._tool, everywhere)

    def stop(self) -> None:
        """End; leaves no trace in any code object."""
        monitoring.set_events(self._tool, 0)
        watched = [function.code for function in self._calls.functions]
        for code in [*self._codes.codes, *watched]:
            monitoring.set_local_events(self._tool, code, 0)
        for which in _EVENTS:
            monitoring.register_callback(self._tool, getattr(monitoring.events, which), None)
        monitoring.free_tool_id(self._tool)
        # what was switched off stays off for whoever gets this tool id next
        monitoring.restart_events()
        self.tapes += [tape for tape in self._begun.values() if tape.thread]

    def _seed(self) -> None:
        """Begin each thread's tape with the frames that run already."""
        native = {t.ident: t.native_id for t in threading.enumerate()}
        for ident, innermost in sys._current_frames().items():
            tape = Tape(self._budget)
            tape.thread = native.get(ident) or 0
            for code, line in running(innermost):
                base = self._watch(code)
                if base is not None and base < WATCHED:
                    tape.latest += (time.time_ns(), base + _ENTER + line)
            self._begun[ident] = tape

    def _watch(self, code: CodeType) -> int | None:
        """Number of a code object, with its events on; None where it is foreign."""
        base = self._codes.add(code)
        if base is not None and base < WATCHED:
            monitoring.set_local_events(self._tool, code, self._inside)
        return base

    def _first(self) -> Tape:
        """The tape of a thread that has none at hand yet."""
        tape = self._begun.pop(threading.get_ident(), None) or Tape(self._budget)
        tape.thread = threading.get_native_id()
        self.tapes.append(tape)
        self._local.tape, self._local.latest = tape, tape.latest
        return tape

    def _callbacks(self) -> dict[str, Callback]:
        """The callbacks; each has all it touches in local variables, for they are hot."""
        write = self._writer()
        leave = self._marks(self._codes.leave, _disable)
        resume, throw = self._resumes(write)
        found = (
            self._lines(write),
            self._marks(self._codes.enter, self._starts(write)),
            self._calls_of_methods(write),
            resume,
            leave,
            leave,
            throw,
            self._unwinds(leave),
        )
        return dict(zip(_EVENTS, found, strict=True))

    def _writer(self) -> Callable[[int], object]:
        """What writes a mark, also the first one of a thread."""
        local, first, time_ns, disable = self._local, self._first, time.time_ns, monitoring.DISABLE

        def write(mark: int) -> object:
            try:
                latest = local.latest
            except AttributeError:
                latest = first().latest
            latest.append(time_ns())
            latest.append(mark)
            return disable if len(latest) >= CHUNK and local.tape.pack() else None

        return write

    def _lines(self, write: Callable[[int], object]) -> Callback:
        local, base_of, time_ns = self._local, self._codes.base, time.time_ns
        disable = monitoring.DISABLE

        def line(code: CodeType, number: int) -> object:
            try:
                latest, mark = local.latest, base_of[id(code)] + number
            except (AttributeError, KeyError):
                base = base_of.get(id(code))
                return disable if base is None else write(base + number)
            latest.append(time_ns())
            latest.append(mark)
            return disable if len(latest) >= CHUNK and local.tape.pack() else None

        return line

    def _marks(self, marks: dict[int, int], otherwise: Callable[[CodeType], object]) -> Callback:
        """What writes the mark that each code object has."""
        local, time_ns, write = self._local, time.time_ns, self._writer()
        disable = monitoring.DISABLE

        def begin_or_end(code: CodeType, _offset: int, _value: object = None) -> object:
            try:
                mark = marks[id(code)]
            except KeyError:
                return otherwise(code)
            try:
                latest = local.latest
            except AttributeError:
                return write(mark)
            latest.append(time_ns())
            latest.append(mark)
            return disable if len(latest) >= CHUNK and local.tape.pack() else None

        return begin_or_end

    def _starts(self, write: Callable[[int], object]) -> Callable[[CodeType], object]:
        """What to do where a frame begins whose code object has no mark for that."""
        watch, functions, number, disable = (
            self._watch,
            self._calls.functions,
            self._calls.number,
            monitoring.DISABLE,
        )
        enter, frame_of = self._codes.enter, sys._getframe

        def start(code: CodeType) -> object:
            base = watch(code)
            if base is None:
                return disable
            if base < WATCHED:
                return write(enter[id(code)])
            function = (base - WATCHED) >> CODE_SHIFT
            if functions[function].delegates:
                return disable
            return write(base + _ENTER + number(function, first_argument(frame_of(2))))

        return start

    def _calls_of_methods(self, write: Callable[[int], object]) -> Callback:
        """What to do where a watched function calls what it delegates to."""
        local, base_of, known, time_ns = (
            self._local,
            self._codes.base,
            self._calls.known,
            time.time_ns,
        )
        number, frame_of, disable = self._calls.number, sys._getframe, monitoring.DISABLE

        def call(code: CodeType, _offset: int, method: Any, _argument: object) -> object:
            try:
                mark = base_of[id(code)] + known[id(method.__self__)] + _ENTER
                latest = local.latest
            except (AttributeError, KeyError):
                base = base_of.get(id(code))
                if base is None:
                    return disable
                function = (base - WATCHED) >> CODE_SHIFT
                return write(base + _ENTER + number(function, first_argument(frame_of(1))))
            latest.append(time_ns())
            latest.append(mark)
            return disable if len(latest) >= CHUNK and local.tape.pack() else None

        return call

    def _resumes(self, write: Callable[[int], object]) -> tuple[Callback, Callback]:
        """What to do where a frame resumes, and where it does so to raise."""
        base_of, watch, disable = self._codes.base, self._watch, monitoring.DISABLE
        resumed_at: dict[tuple[int, int], int] = {}

        def resume(code: CodeType, offset: int) -> object:
            base = base_of.get(id(code))
            if base is None:
                base = watch(code)
            if base is None or base >= WATCHED:
                return disable
            at = resumed_at.get((base, offset))
            if at is None:
                at = resumed_at[base, offset] = line_at(code, offset)
            return write(base + _ENTER + at)

        def throw(code: CodeType, offset: int, _error: object) -> None:
            # this event may not be switched off
            resume(code, offset)

        return resume, throw

    def _unwinds(self, leave: Callback) -> Callback:
        """What to do where an error ends a frame, be it of foreign code."""
        marks = self._codes.leave

        def unwind(code: CodeType, offset: int, _error: object) -> None:
            # this event may not be switched off
            if id(code) in marks:
                leave(code, offset)

        return unwind


def _disable(_code: CodeType) -> object:
    return monitoring.DISABLE


_EVENTS = (
    "LINE",
    "PY_START",
    "CALL",
    "PY_RESUME",
    "PY_RETURN",
    "PY_YIELD",
    "PY_THROW",
    "PY_UNWIND",
)


def _free_tool() -> int:
    for number in TOOL_IDS:
        if monitoring.get_tool(number) is None:
            monitoring.use_tool_id(number, TOOL_NAME)
            return number
    taken = ", ".join(str(monitoring.get_tool(number)) for number in TOOL_IDS)
    raise UsageError(
        f"line events are in use by other tools: {taken}",
        hint='stop one of them, or ask for source="call"',
    )


def running(innermost: FrameType | None) -> list[tuple[CodeType, int]]:
    """Code and line of a frame and its callers, outermost first."""
    found = []
    while innermost is not None:
        found.append((innermost.f_code, innermost.f_lineno or 0))
        innermost = innermost.f_back
    return found[::-1]


def line_at(code: CodeType, offset: int) -> int:
    """Line of an instruction; the function's first where it has none."""
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno
