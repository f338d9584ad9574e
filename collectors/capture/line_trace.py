"""Line events of `sys.settrace`, for Python 3.11: exact, at a price a call."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

from neuron_explorer.collectors.capture.tapes import (
    CHUNK,
    CODE_SHIFT,
    ENTER,
    KIND_SHIFT,
    LEAVE,
    WATCHED,
    Budget,
    CodeTable,
    Tape,
)
from neuron_explorer.collectors.capture.watched import Watch, first_argument

TraceFunction = Callable[[FrameType, str, Any], Any]

FOREIGN = -1
"""Stands for the number of a code object that is not recorded."""


class TracedLines:
    """Writes tapes of the thread that starts it and of every thread begun later."""

    def __init__(self, codes: CodeTable, budget: Budget, watch: Watch) -> None:
        self.tapes: list[Tape] = []
        self._codes = codes
        self._calls = watch
        self._budget = budget
        self._stopped: list[bool] = []
        """Empty while recording: what other threads look at to know when to end."""
        self._base: dict[int, int] = {}
        self._foreign: list[object] = []
        self._before: tuple[Any, Any] = (None, None)
        self._frames_before: dict[int, Any] = {}
        self._started_by = 0

    def start(self) -> None:
        """Begin; a trace function that was there before rests until `stop()`."""
        self._started_by = threading.get_ident()
        self._before = (sys.gettrace(), threading.gettrace())
        on_call, function_of = self._functions(self._before[0])
        frame: FrameType | None = sys._getframe(1)
        seeds = []
        while frame is not None:
            if FOREIGN < self._number(frame) < WATCHED:
                self._frames_before[id(frame)] = frame.f_trace
                seeds.append(frame)
                frame.f_trace = function_of(frame)
            frame = frame.f_back
        for seed in reversed(seeds):
            function_of(seed)(seed, "call", None)
        threading.settrace(self._in_new_thread)
        sys.settrace(on_call)

    def stop(self) -> None:
        """End, and give frames and threads the trace functions they had.

        Other threads than the calling one get theirs at their next call.
        """
        self._stopped.append(True)
        own, of_new_threads = self._before
        if threading.get_ident() != self._started_by:
            own = None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if getattr(frame.f_trace, "__module__", None) == __name__:
                frame.f_trace = self._frames_before.get(id(frame), own)
                if self._number(frame) >= WATCHED:
                    frame.f_trace_lines = True
            frame = frame.f_back
        sys.settrace(own)
        threading.settrace(of_new_threads)
        self._frames_before.clear()
        self._foreign.clear()

    def _number(self, frame: FrameType) -> int:
        """Shifted number of a frame's code, `FOREIGN` where it is not model code."""
        code = frame.f_code
        found = self._base.get(id(code))
        if found is None:
            base = self._codes.add(code)
            found = self._base[id(code)] = FOREIGN if base is None else base
            # alive, its id stays its own
            self._foreign.append(code)
        return found

    def _in_new_thread(self, frame: FrameType, event: str, arg: object) -> Any:
        on_call, _ = self._functions(self._before[1])
        sys.settrace(on_call)
        return on_call(frame, event, arg)

    def _functions(self, resting: Any) -> tuple[TraceFunction, Callable[[FrameType], Any]]:
        """Trace function of one thread's calls, and what gives that of a frame in it.

        Each code object has a trace function of its own, with everything it touches in local
        variables: what a line costs is paid millions of times.

        Args:
            resting: The thread's trace function before and after.
        """
        tape = Tape(self._budget)
        self.tapes.append(tape)
        number, stopped = self._number, self._stopped
        of_code: dict[int, TraceFunction | Literal[False]] = {}

        def function_of(frame: FrameType) -> TraceFunction | Literal[False]:
            base = number(frame)
            found: TraceFunction | Literal[False] = False
            if base != FOREIGN:
                found = self._on_event(tape, base)
                found = found if base < WATCHED else self._on_watched(tape, base, found)
            of_code[id(frame.f_code)] = found
            return found

        def on_call(frame: FrameType, event: str, arg: object) -> TraceFunction | None:
            if stopped:
                sys.settrace(resting)
                return None
            found = of_code.get(id(frame.f_code))
            if found is None:
                found = function_of(frame)
            return found(frame, event, arg) if found else None

        return on_call, function_of

    def _on_event(self, tape: Tape, base: int) -> TraceFunction:
        """Trace function of one code object, by its number."""
        latest, stopped, time_ns = tape.latest, self._stopped, time.time_ns
        begin, end = base + (ENTER << KIND_SHIFT), base + (LEAVE << KIND_SHIFT)

        def on_event(frame: FrameType, event: str, _arg: object) -> TraceFunction | None:
            if event == "line":
                kind = base
            elif event == "call":
                kind = begin
            elif event == "return":
                kind = end
            else:
                return on_event
            if stopped:
                return on_event
            latest.append(time_ns())
            latest.append(kind + (frame.f_lineno or 0))
            if len(latest) >= CHUNK:
                tape.pack()
            return on_event

        return on_event

    def _on_watched(self, tape: Tape, base: int, on_event: TraceFunction) -> TraceFunction:
        """The same where the call of a watched function begins."""
        latest, time_ns, kind = tape.latest, time.time_ns, ENTER << KIND_SHIFT
        number_of = self._calls.number

        def on_watched(frame: FrameType, _event: str, _arg: object) -> TraceFunction:
            frame.f_trace_lines = False
            owner = first_argument(frame)
            called = number_of((base - WATCHED) >> CODE_SHIFT, owner)
            latest.append(time_ns())
            latest.append(base + kind + called)
            if len(latest) >= CHUNK:
                tape.pack()
            return on_event

        return on_watched


def rest() -> Any:
    """Stop tracing the calling thread for a while, where this module traces it.

    A compilation makes millions of calls and runs no model code.
    """
    traced_by: Any = sys.gettrace()
    if getattr(traced_by, "__module__", None) != __name__:
        return None
    sys.settrace(None)
    return traced_by


def resume(traced_by: Any) -> None:
    """Trace again what `rest()` gave; a trace function set meanwhile stays."""
    if traced_by is not None and sys.gettrace() is None:
        sys.settrace(traced_by)
