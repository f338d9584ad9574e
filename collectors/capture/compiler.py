"""What torch.compile does while it does it: its structured trace, with the lines of its kernels.

torch writes the structured trace (what `TORCH_TRACE` and tlparse show) to a logger. While
somebody listens here, a handler reads it, and for the time of each compilation Inductor is told
to keep the provenance of its kernels and to mark CPU kernels in the profile. Both belong to the
key of Inductor's caches, so what was cached without them is compiled again, once. They are
put back when the compilation ends, so the user's own settings never change.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.capture.companions import Remark
from neuron_explorer.collectors.capture.line_trace import rest, resume
from neuron_explorer.collectors.capture.recorded_lines import _shortened
from neuron_explorer.collectors.capture.resting import BACKWARD, LOGGER, compilation_edge
from neuron_explorer.collectors.compile_log import CompileLog
from neuron_explorer.collectors.compile_notes import TRACES, Note, note_of
from neuron_explorer.collectors.linking.kernels import CompiledGraph
from neuron_explorer.collectors.recorded import RECORDED, recorded_table

MAX_TEXT = 256 << 20
"""Characters of notes that wait for a window; records beyond that are left out."""

_PROVENANCE = 2
"""Inductor's `basic` level: lines of each kernel. Level 1 also rewrites every node's metadata."""


class _Settings:
    """Inductor's settings during a compilation, in the thread that compiles.

    They are context variables, so each thread has its own: what is set where a compilation
    begins holds for it and for nobody else.
    """

    def __init__(self) -> None:
        self._here = threading.local()

    def enter(self) -> None:
        """A compilation begins; another one may be under way around it."""
        depth = getattr(self._here, "depth", 0)
        self._here.depth = depth + 1
        config: Any = sys.modules.get("torch._inductor.config")
        if depth:
            return
        self._here.traced_by = rest()
        self._here.changed = []
        if config is None:
            return
        self._change(config.trace, "provenance_tracking_level", value=_PROVENANCE)
        self._change(config.cpp, "enable_kernel_profile", value=True)

    def _change(self, group: Any, name: str, *, value: object) -> None:
        before = getattr(group, name)
        if not before:
            setattr(group, name, value)
            self._here.changed.append((group, name, before))

    def leave(self) -> None:
        """A compilation ended."""
        self._here.depth = max(getattr(self._here, "depth", 0) - 1, 0)
        if not self._here.depth:
            for group, name, before in getattr(self._here, "changed", ()):
                setattr(group, name, before)
            self._here.changed = []
            resume(getattr(self._here, "traced_by", None))


class _Listener(logging.Handler):
    """Takes down what matters of the structured trace."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._notes: list[Note] = []
        self._size = 0
        self.dropped = 0
        self._settings = _Settings()
        self._failed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Called by torch in the middle of a compilation: nothing may escape."""
        try:
            self._take(record)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end a compilation
            if not self._failed:
                self._failed = True
                warnings.warn(f"compilations are not fully recorded: {error!r}", stacklevel=2)

    def _take(self, record: logging.LogRecord) -> None:
        metadata: Mapping[str, Any] = getattr(record, "metadata", {})
        text = getattr(record, "payload", None)
        if "chromium_event" in metadata:
            self._follow(text or "")
            return
        note = note_of(metadata, text, time.time_ns(), threading.get_native_id())
        if note is None:
            return
        if note.kind == TRACES:
            note = note._replace(fields={"nodes": _nodes_of_kernels()})
        with self._lock:
            if self._size + len(note.text) > MAX_TEXT:
                self.dropped += 1
                return
            self._size += len(note.text)
            self._notes.append(note)

    def _follow(self, event: str) -> None:
        """Begin and end of compilations."""
        edge = compilation_edge(event)
        if edge > 0:
            if BACKWARD in event[:120]:
                _forget_kernels()
            self._settings.enter()
        elif edge < 0:
            self._settings.leave()

    def drain(self) -> list[Note]:
        """All notes so far, once."""
        with self._lock:
            notes, self._notes, self._size = self._notes, [], 0
        return notes


def _forget_kernels() -> None:
    """Empty what torch knows of kernels, as it does itself before each forward.

    Else a backward that is compiled on its own has the lines of every backward before it.
    """
    debug: Any = sys.modules.get("torch._inductor.debug")
    for name in ("_inductor_kernel_stack_trace", "_inductor_triton_kernel_to_post_grad_node_info"):
        known = getattr(debug, name, None)
        if isinstance(known, dict):
            known.clear()


def _nodes_of_kernels() -> dict[str, list[str]]:
    """Nodes of each kernel of the graph just compiled; torch logs them of forward graphs only."""
    debug: Any = sys.modules.get("torch._inductor.debug")
    nodes = getattr(debug, "_inductor_triton_kernel_to_post_grad_node_info", None)
    if not isinstance(nodes, dict):
        return {}
    return {name: list(found) for name, found in nodes.items()}


class _Compilations:
    """What this process knows of its compilations, whoever listens."""

    def __init__(self) -> None:
        self._listener = _Listener()
        self._log: CompileLog | None = None
        self._rows: list[dict[str, Any]] = []
        self._users = 0
        self._always = False
        self._lock = threading.RLock()

    def listen(self) -> None:
        """Begin to listen, or count one more who does."""
        with self._lock:
            self._users += 1
            logger = logging.getLogger(LOGGER)
            # as torch means it: its records have no text, and would end on the user's screen
            logger.propagate = False
            if self._listener not in logger.handlers:
                logger.addHandler(self._listener)

    def listen_always(self) -> None:
        """Begin to listen for good."""
        if not self._always:
            self._always = True
            self.listen()

    @property
    def listening(self) -> bool:
        return self._users > 0

    def leave(self) -> None:
        """One less listens."""
        with self._lock:
            self._users = max(self._users - 1, 0)
            if not self._users:
                logging.getLogger(LOGGER).removeHandler(self._listener)

    def read(self) -> None:
        """Read the notes that wait."""
        with self._lock:
            notes = self._listener.drain()
            if notes:
                self._log = self._log or CompileLog(_shortened, _operators())
                self._rows += self._log.add(notes)

    def rows(self) -> list[dict[str, Any]]:
        """Rows that no window has had yet."""
        with self._lock:
            self.read()
            rows, self._rows = self._rows, []
            return rows

    def graphs(self) -> list[CompiledGraph]:
        with self._lock:
            self.read()
            return [] if self._log is None else self._log.graphs()

    def dropped(self) -> int:
        """Records that were left out since the last call."""
        dropped, self._listener.dropped = self._listener.dropped, 0
        return dropped


def _operators() -> set[str]:
    """Names of ATen's operators, after which Inductor names kernels."""
    names = torch._C._dispatch_get_all_op_names()
    return {name[6:].partition(".")[0] for name in names if name.startswith("aten::")}


_compilations = _Compilations()


def enable_compile_sources() -> None:
    """From now on know the source lines of everything that torch.compile compiles.

    Call it before the first compiled call; `profile()` does the same from its start on. Later
    windows of this process then show the lines of kernels that were compiled before them, and
    the first one shows those compilations. What Inductor's caches hold without lines is compiled
    again, once. Calling it again changes nothing.
    """
    _compilations.listen_always()


def hide_own_code() -> None:
    """Keep Dynamo from compiling what records: it sees every function that runs in a region."""
    skip = _skipper()
    home = __name__.rpartition(".")[0] + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(home):
            for code in _codes(vars(module).values(), name):
                skip(code)


def _skipper() -> Callable[[CodeType], None]:
    """What tells Dynamo to leave a code object alone, and still look at what it calls."""
    eval_frame: Any = torch._C._dynamo.eval_frame
    if hasattr(eval_frame, "skip_code"):  # before torch 2.7
        skip: Callable[[CodeType], None] = eval_frame.skip_code
        return skip
    action = eval_frame._FrameAction
    plan = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
    return lambda code: eval_frame.set_code_exec_strategy(code, plan)


def _codes(values: Iterable[object], module: str) -> Iterator[CodeType]:
    """Code of all functions and methods among some values that a module has made itself."""
    for value in values:
        inner = getattr(value, "__func__", getattr(value, "fget", value))
        if getattr(inner, "__module__", None) != module:
            continue
        if isinstance(inner, FunctionType):
            yield from _nested(inner.__code__)
        elif isinstance(inner, type):
            yield from _codes(vars(inner).values(), module)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def known_graphs() -> Sequence[CompiledGraph]:
    """All compiled graphs whose compilation was seen."""
    return _compilations.graphs()


class CompileSources:
    """Rows of the layer `compiler`: compilations, graph breaks, recompilations, cache look-ups.

    A window has all that happened since the last one was written, so the first has those of
    the time before it as well.
    """

    def __init__(self) -> None:
        self._listening = False

    def listen(self) -> None:
        """Begin to listen, before the first window."""
        if not self._listening:
            self._listening = True
            _compilations.listen()

    def leave(self) -> None:
        """Listen no more."""
        if self._listening:
            self._listening = False
            _compilations.leave()

    def start(self) -> None:
        """Begin a window; who listens has begun before."""

    def stop(self) -> None:
        """End a window; listening goes on until `leave()`."""

    def rows(self, clock: Alignment) -> pa.Table:
        """Everything since the last window."""
        rows = _compilations.rows()
        if not rows:
            return RECORDED.empty_table()
        starts = clock.to_torch(np.array([row["start_ns"] for row in rows], np.int64))
        moved = zip(rows, starts.tolist(), strict=True)
        return recorded_table([row | {"start_ns": start} for row, start in moved])

    def facts(self) -> Mapping[str, object]:
        """That compilations were listened to, so that none means none."""
        return {"compile_sources": _compilations.listening}

    def remarks(self) -> Sequence[Remark]:
        """Records beyond what memory may hold."""
        dropped = _compilations.dropped()
        return (
            [("compilations_dropped", f"beyond {MAX_TEXT} characters", dropped)] if dropped else []
        )
