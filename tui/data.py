"""Questions to the trace, off the thread that draws: each on its own cursor, and each may be ended.

A `Job` runs in a worker thread and asks through its `Ask`. Whoever asks again about the same
thing stops the older question: a query that runs is interrupted, one that waits never starts.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from neuron_explorer.errors import NeuronExplorerError, QueryError
from neuron_explorer.sandbox import QueryResult
from neuron_explorer.trace import Trace

T = TypeVar("T")
Row = Mapping[str, Any]

_THREADS = 4
"""One may be busy for long with the analyzers, and a screen has up to three questions."""


_MOMENT_S = 0.05
_LAST_MOMENT_S = 30.0
"""Most seconds until a thread whose query was interrupted is over."""


class StoppedError(Exception):
    """Nobody waits for this answer any more."""


class Ask:
    """One question: what its job asks the trace with, and how it is stopped."""

    def __init__(self, trace: Trace | None) -> None:
        self._trace = trace
        self._lock = threading.Lock()
        self._interrupt: Callable[[], None] | None = None
        self._others: list[Trace] = []
        self.stopped = False

    @property
    def trace(self) -> Trace:
        if self._trace is None:
            raise RuntimeError("asked before a trace was open")
        return self._trace

    def rows(self, query: str, params: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """Rows of a query of this program's own.

        Raises:
            StoppedError: a newer question took its place.
        """
        self.check()
        try:
            rows = self.trace.rows(query, params, started=self._started)
        finally:
            with self._lock:
                self._interrupt = None
        self.check()
        return rows

    def query(self, text: str, *, limit: int | None, timeout_s: float) -> QueryResult:
        """Rows of a query that the reader wrote.

        Raises:
            QueryError: it is refused, does not run, or exceeds a bound.
            StoppedError: it was stopped.
        """
        self.check()
        self._started(self.trace.cancel_query)
        try:
            return self.trace.query(text, limit=limit, timeout_s=timeout_s)
        except QueryError:
            self.check()
            raise
        finally:
            with self._lock:
                self._interrupt = None

    @contextmanager
    def using(self, other: Trace) -> Iterator[None]:
        """Let a job ask another trace as well, until it is done with it."""
        self._others.append(other)
        try:
            yield
        finally:
            self._others.remove(other)

    def end_queries(self) -> None:
        """Interrupt whatever runs on the traces that the job may ask, from another thread."""
        for trace in [*self._others, *([self._trace] if self._trace is not None else [])]:
            trace.end_queries()

    def check(self) -> None:
        """Leave a job that nobody waits for.

        Raises:
            StoppedError: a newer question took its place.
        """
        if self.stopped:
            raise StoppedError

    def stop(self) -> None:
        """Interrupt the query that runs; callable from any thread."""
        with self._lock:
            self.stopped = True
            if self._interrupt is not None:
                self._interrupt()

    def _started(self, interrupt: Callable[[], None]) -> None:
        with self._lock:
            self._interrupt = interrupt


Job = Callable[[Ask], T]


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a job gave, or in one line why it could not."""

    value: T | None = None
    problem: str = ""
    error: Exception | None = None


@dataclass(frozen=True)
class _Asked:
    ask: Ask
    job: Job[Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Answer[Any]]


class Questions:
    """Runs jobs on a few threads."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._open: set[Ask] = set()
        self._threads = [
            threading.Thread(target=self._work, name=f"query-{number}", daemon=True)
            for number in range(_THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, ask: Ask, job: Job[T]) -> asyncio.Future[Answer[T]]:
        """Put a job in line; the future belongs to the running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer[T]] = loop.create_future()
        self._open.add(ask)
        future.add_done_callback(lambda _: self._open.discard(ask))
        self._waiting.put(_Asked(ask, job, loop, future))
        return future

    def stop(self) -> None:
        """Stop everything that was asked; nothing more can be."""
        for ask in list(self._open):
            ask.stop()
        for _ in self._threads:
            self._waiting.put(None)

    def end_queries(self) -> None:
        """Interrupt what runs for anything that was asked; a job may ask again meanwhile."""
        for ask in list(self._open):
            ask.end_queries()

    def over(self) -> bool:
        """Whether all threads have ended, after waiting a moment for the first that has not."""
        running = [thread for thread in self._threads if thread.is_alive()]
        if running:
            running[0].join(_MOMENT_S)
        return not any(thread.is_alive() for thread in running)

    def join(self) -> None:
        """Wait for the threads: one that still ran in DuckDB would abort a Python that ends."""
        until = time.monotonic() + _LAST_MOMENT_S
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))

    def _work(self) -> None:
        while (asked := self._waiting.get()) is not None:
            answer = _answer(asked)
            # the loop is closed once the program left, and then nobody listens
            with suppress(RuntimeError):
                asked.loop.call_soon_threadsafe(_deliver, asked.future, answer)


def _answer(asked: _Asked) -> Answer[Any]:
    try:
        asked.ask.check()
        return Answer(asked.job(asked.ask))
    except StoppedError:
        return Answer(problem="stopped")
    except Exception as error:  # noqa: BLE001 - whatever a query raises is a line on the screen
        said = "stopped" if asked.ask.stopped else one_line(error)
        return Answer(problem=said, error=error)


def one_line(error: BaseException) -> str:
    """An error as a person reads it in one line."""
    said = str(error).partition("\n\n")[0] or type(error).__name__
    hint = error.hint if isinstance(error, NeuronExplorerError) else ""
    return " ".join(f"{said}; {hint}".split() if hint else said.split())


def _deliver(future: asyncio.Future[Answer[Any]], answer: Answer[Any]) -> None:
    if not future.done():
        future.set_result(answer)
