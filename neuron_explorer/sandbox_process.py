"""The process that runs queries from outside, and the handle on it.

`Sandbox` starts it on the first query, kills it when a query outstays its time, and starts another
for the next one. Requests are JSON lines on its standard input, answers pickles on its standard
output, each behind its length. It ends with its input, so it never outlives its parent for long.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from neuron_explorer.database import Database
from neuron_explorer.errors import NeuronExplorerError, QueryError
from neuron_explorer.sandbox import (
    BoundExceededError,
    QueryResult,
    open_locked,
    run_untrusted,
    took_too_long,
    used_too_much,
)
from neuron_explorer.trace_facts import fact_tables
from neuron_explorer.trace_files import read_trace_files

_GRACE_S = 0.5
"""How long after its time a query may take to notice the interrupt before it is killed."""

_OVERHEAD_BYTES = 256 * 1024**2
"""Room for threads, Python and Arrow beside what DuckDB itself accounts for."""

_LENGTH_BYTES = 8

_RECURSION_LIMIT = 10_000
"""For reading syntax trees: DuckDB nests expressions up to 1000 deep, a few levels of JSON each."""


class Sandbox:
    """Runs untrusted queries over some trace files, one at a time, in a process of its own."""

    def __init__(self, paths: Sequence[Path], device: str | None, *, raw: bool = False) -> None:
        absolute = [str(path.absolute()) for path in paths]
        self._opening = {"paths": absolute, "device": device, "raw": raw}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._memory_limit_bytes = 0
        self._stop: weakref.finalize[..., Sandbox] | None = None

    def query(
        self, text: str, *, limit: int | None, timeout_s: float | None, memory_limit_bytes: int
    ) -> QueryResult:
        """Run one query; see `Trace.query`.

        Raises:
            QueryError: The query is refused, does not run, or exceeds a bound.
        """
        request = {"text": text, "limit": limit, "timeout_s": timeout_s}
        with self._lock:
            process = self._ready(memory_limit_bytes)
            try:
                answer, late = _ask(process, request, timeout_s)
                if answer is None:
                    raise took_too_long(timeout_s) if late else used_too_much()
                return _unpack(answer)
            except (BoundExceededError, KeyboardInterrupt):
                self._end()  # dead, bloated, or with an answer still to come
                raise

    def cancel(self) -> None:
        """End the query that runs now, from another thread; the next one gets a new process."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def _ready(self, memory_limit_bytes: int) -> subprocess.Popen[bytes]:
        """The process, started if need be: its memory limit is fixed at its start."""
        died = self._process is not None and self._process.poll() is not None
        if died or memory_limit_bytes != self._memory_limit_bytes:
            self._end()
        if self._process is None:
            self._process = _start()
            self._stop = weakref.finalize(self, _kill, self._process)
            self._memory_limit_bytes = memory_limit_bytes
            try:
                _open_in(self._process, self._opening | {"memory_limit_bytes": memory_limit_bytes})
            except BaseException:
                self._end()
                raise
        return self._process

    def _end(self) -> None:
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None


def _start() -> subprocess.Popen[bytes]:
    home = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        # -P: a file called duckdb.py in the current folder is none of ours
        [sys.executable, "-P", "-m", "neuron_explorer.sandbox_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
    )


def _open_in(process: subprocess.Popen[bytes], opening: dict[str, Any]) -> None:
    answer, _ = _ask(process, opening, timeout_s=None)
    if answer is None:
        raise QueryError(f"the process that runs queries ended with code {process.wait()}")
    _unpack(answer)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # a request that it did not live to read


def _ask(
    process: subprocess.Popen[bytes], request: dict[str, Any], timeout_s: float | None
) -> tuple[bytes | None, bool]:
    """The answer, or None where the process died; and whether it was killed for being late."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        process.kill()

    timer = threading.Timer((timeout_s or 0) + _GRACE_S, kill)
    timer.daemon = True
    if timeout_s is not None:
        timer.start()
    try:
        answer = _exchange(process, request)
    finally:
        timer.cancel()
    if timeout_s is not None:
        timer.join()  # an answer that comes with the kill is the last one
    return (None if late.is_set() else answer), late.is_set()


def _exchange(process: subprocess.Popen[bytes], request: dict[str, Any]) -> bytes | None:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        return None
    length = int.from_bytes(process.stdout.read(_LENGTH_BYTES), "little")
    answer = process.stdout.read(length)
    return answer if length and len(answer) == length else None


def _unpack(answer: bytes) -> QueryResult:
    told = pickle.loads(answer)  # of our own process, which runs our own code
    if isinstance(told, NeuronExplorerError):
        raise told
    result: QueryResult = told
    return result


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """The process itself: open the trace that the first request names, then answer the others."""
    database: Database | None = None
    for line in requests:
        request = json.loads(line)
        try:
            if database is None:
                database = _open(request)
                told: object = QueryResult([], [], truncated=False)
            else:
                told = run_untrusted(database, **request)
        except NeuronExplorerError as error:
            told = error
        _answer(answers, told)


def _open(request: dict[str, Any]) -> Database:
    files = read_trace_files([Path(path) for path in request["paths"]])
    limit = int(request["memory_limit_bytes"])
    facts = fact_tables(files, request["device"])
    database = open_locked(files, facts, limit, raw=request["raw"])
    _bound_memory(limit + _OVERHEAD_BYTES)
    return database


def _bound_memory(more_bytes: int) -> None:
    """Let the process allocate so much more than it has: DuckDB's own limit leaves gaps.

    Where the system does not say how much a process has (other than Linux), time alone bounds it.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return
    import resource  # noqa: PLC0415 - not on every system

    fields = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
    allowed = int(fields["VmData"].split()[0]) * 1024 + more_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))


def _answer(answers: IO[bytes], told: object) -> None:
    try:
        packed = pickle.dumps(told)
    except MemoryError:
        packed = pickle.dumps(used_too_much())
    answers.write(len(packed).to_bytes(_LENGTH_BYTES, "little"))
    answers.write(packed)
    answers.flush()


def main() -> None:
    """Keep standard output for answers alone: what a library prints must not reach the parent."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
