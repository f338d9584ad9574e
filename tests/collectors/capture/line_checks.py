"""What the line collector must get right, runnable by any Python without torch or pytest.

    python line_checks.py [trace]

Marks are calls of a foreign function that notes the time: the line that the timeline names
for that time must be the one where the mark stands.
"""

from __future__ import annotations

import asyncio
import bisect
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from neuron_explorer.collectors.capture.lines import BY_EVENTS, LineCollector
from neuron_explorer.collectors.capture.timelines import Timelines
from neuron_explorer.collectors.capture.watched import UNIDENTIFIED, Watch, WatchedFunction
from neuron_explorer.errors import UsageError

_FOREIGN = """
def mark(found, time_ns, get_native_id, depth_frame):
    def note(value=0):
        frame = depth_frame(1)
        found.append((time_ns(), get_native_id(), frame.f_code.co_name, frame.f_lineno))
        return value
    return note
"""
found: list[tuple[int, int, str, int]] = []
_namespace: dict[str, Callable[..., Callable[..., int]]] = {}
exec(compile(_FOREIGN, "<foreign>", "exec"), _namespace)
note = _namespace["mark"](found, time.time_ns, threading.get_native_id, sys._getframe)


def collector(*, by_events: bool, budget: int = 1_000_000) -> LineCollector:
    return LineCollector(lambda file: file == __file__, budget=budget, by_events=by_events)


def recursive(depth: int) -> int:
    if depth == 0:
        return note()
    return recursive(depth - 1) + note()


def expressions() -> None:
    note(
        note()
        + (
            note()  # a line of its own
            + note()
        )
    )
    [note(note()) for _ in range(2)]
    list(map(lambda _: note(), "ab"))  # noqa: C417 - a frame that foreign code calls
    {number: note() for number in range(2)}
    recursive(2) + note()


def failing() -> None:
    note()
    raise ValueError


def exceptions() -> None:
    for _ in range(2):
        try:
            failing()
        except ValueError:
            note()
        finally:
            note()
        note()


def yielding() -> Generator[int, int | None, None]:
    for _ in range(2):
        note()
        got = (yield note()) or note()
        note(got)
    note()


def thrown() -> Generator[int, None, None]:
    try:
        yield note()
    except KeyError:
        yield note()


@contextmanager
def scope() -> Iterator[None]:
    note()
    yield
    note()


def generators() -> None:
    first, second = yielding(), yielding()
    for _ in zip(first, second, strict=False):
        note()
    left = thrown()
    next(left)
    left.throw(KeyError()) + note()
    left.close()
    with scope():
        note()
    note()


async def child(number: int) -> int:
    note()
    await asyncio.sleep(0.001 * number)
    return note() + await leaf()


async def leaf() -> int:
    await asyncio.sleep(0)
    return note()


async def stream() -> AsyncIterator[int]:
    for _ in range(2):
        await asyncio.sleep(0)
        yield note()


async def coroutines() -> None:
    await asyncio.gather(child(2), child(1))
    async for _ in stream():
        note()
    note()


def in_threads() -> None:
    threads = [threading.Thread(target=recursive, args=(3,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    note()


def work() -> None:
    expressions()
    exceptions()
    generators()
    asyncio.run(coroutines())
    in_threads()


def place_at(timelines: Timelines, thread: int, when: int) -> tuple[str, int] | None:
    """Function and line that ran on a thread at a time."""
    for line in timelines.threads:
        if line.thread == thread:
            last = bisect.bisect_right(line.start_ns, when) - 1
            if last >= 0 and line.node[last] >= 0:
                node = timelines.nodes[line.node[last]]
                return timelines.codes[node.code].co_name, node.line
    return None


def wrong(timelines: Timelines) -> list[str]:
    """Marks whose line the timelines do not name."""
    said = [(mark, place_at(timelines, mark[1], mark[0])) for mark in found]
    return [f"{mark[2:]} is not {place}" for mark, place in said if place != mark[2:]]


def check_lines(*, by_events: bool) -> None:
    recorder = collector(by_events=by_events)
    for _ in range(2):
        found.clear()
        recorder.start()
        recorder.start()
        work()
        timelines = recorder.stop().timelines()
        assert len(found) > 60, len(found)
        assert not (bad := wrong(timelines)), bad
        assert recorder.stop().timelines().threads == []


def check_stacks(*, by_events: bool) -> None:
    found.clear()
    recorder = collector(by_events=by_events)
    recorder.start()
    recursive(2)
    timelines = recorder.stop().timelines()
    names = []
    (line,) = timelines.threads
    node = line.node[bisect.bisect_right(line.start_ns, found[0][0]) - 1]
    while node >= 0:
        names.append(timelines.codes[timelines.nodes[node].code].co_name)
        node = timelines.nodes[node].caller
    assert names[:4] == ["recursive"] * 3 + ["check_stacks"], names


def check_budget(*, by_events: bool) -> None:
    found.clear()
    recorder = collector(by_events=by_events, budget=50)
    recorder.start()
    note()
    for _ in range(100):
        note()
    note()
    timelines = recorder.stop().timelines()
    assert timelines.truncated
    assert timelines.marks <= 51, timelines.marks
    when, thread = found[0][:2]
    assert place_at(timelines, thread, when) == found[0][2:]
    assert place_at(timelines, thread, found[-1][0]) is None


def check_fork(*, by_events: bool) -> None:
    recorder = collector(by_events=by_events)
    recorder.start()
    child_id = os.fork()
    if child_id == 0:
        quiet = not recorder.active and sys.gettrace() is None
        work()
        os._exit(0 if quiet and not recorder.stop().tapes else 1)
    _, status = os.waitpid(child_id, 0)
    assert status == 0, status
    assert recorder.active
    recorder.stop()


def check_other_thread_stops(*, by_events: bool) -> None:
    found.clear()
    recorder = collector(by_events=by_events)
    recorder.start()
    note()
    stopper = threading.Thread(target=recorder.stop)
    stopper.start()
    stopper.join()
    assert not recorder.active
    recursive(1)
    assert sys.gettrace() is None


def check_tracer_is_restored(*, by_events: bool) -> None:
    seen = []

    def theirs(frame: FrameType, event: str, _arg: object) -> None:
        seen.append((frame.f_code.co_name, event))

    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        recorder = collector(by_events=by_events)
        recorder.start()
        recorder.stop()
        assert sys.gettrace() is theirs
        seen.clear()
        recursive(0)
    finally:
        sys.settrace(before)
    assert ("recursive", "call") in seen


def check_taken_tools_are_said(*, by_events: bool) -> None:
    if not by_events:
        return
    monitoring = getattr(sys, "monitoring")  # noqa: B009 - Python 3.11 has none
    for number in (3, 4):
        monitoring.use_tool_id(number, "theirs")
    said = ""
    try:
        collector(by_events=True).start()
    except UsageError as error:
        said = str(error)
    finally:
        for number in (3, 4):
            monitoring.free_tool_id(number)
    assert "theirs" in said
    recorder = collector(by_events=True)
    recorder.start()
    recorder.stop()
    assert all(monitoring.get_tool(number) is None for number in (3, 4))


_WATCHED = """
def run(name, work):
    return work()

def other(name, work):
    return run(name, work)
"""


def watched_functions() -> tuple[Callable[..., object], Callable[..., object]]:
    space: dict[str, Callable[..., object]] = {}
    exec(compile(_WATCHED, "<watched>", "exec"), space)
    return space["run"], space["other"]


def identified(name: object) -> int:
    return int(str(name)) * 10


def marked() -> int:
    return note()


def watched_work(run: Callable[..., object], other: Callable[..., object]) -> None:
    """Calls inside others, one that fails, one on another thread, one that cannot be told."""
    run(1, lambda: run(2, marked))
    other(3, marked)
    try:
        run(4, failing)
    except ValueError:
        run(5, marked)
    thread = threading.Thread(target=run, args=(6, marked))
    thread.start()
    thread.join()
    run("x", marked)


def check_watched_calls(*, by_events: bool) -> None:
    run, other = watched_functions()
    functions = [WatchedFunction(f.__code__, identified) for f in (run, other)]
    watch = Watch(functions)
    recorder = LineCollector(lambda file: file == __file__, by_events=by_events, watch=watch)
    for _ in range(2):
        found.clear()
        recorder.start()
        watched_work(run, other)
        timelines = recorder.stop().timelines()
        assert not (bad := wrong(timelines)), bad
        run(7, marked)
        main, threaded = watch.take()
        said = list(zip(main.function, main.number, main.caller, strict=True))
        expected = [(0, 10, -1), (0, 20, 0), (1, 30, -1), (0, 30, 2), (0, 40, -1), (0, 50, -1)]
        assert said == [*expected, (0, UNIDENTIFIED, -1)], said
        assert list(threaded.number) == [60]
        assert len(watch.failures) == 1, watch.failures
        assert all(main.start_ns[n] < main.start_ns[n + 1] for n in range(6))
        assert main.end_ns[1] <= main.end_ns[0] <= main.start_ns[2]
        assert main.end_ns[4] <= main.start_ns[5]
        assert watch.take() == []


def check_watched_calls_keep_to_the_budget(*, by_events: bool) -> None:
    run, _ = watched_functions()
    watch = Watch([WatchedFunction(run.__code__, identified)])
    recorder = LineCollector(lambda _: False, budget=4, by_events=by_events, watch=watch)
    recorder.start()
    run(1, lambda: [run(2, note) for _ in range(9)])
    assert recorder.stop().truncated
    (calls,) = watch.take()
    assert list(calls.number) == [10, 20, 20], calls.number
    assert calls.end_ns[0] == calls.end_ns[2] >= calls.start_ns[2]


_DELEGATING = """
class Owner:
    def call(self, work):
        return self.inner(work)

    def inner(self, work):
        return work()
"""


def check_a_delegating_function_is_told_by_what_it_calls(*, by_events: bool) -> None:
    space: dict[str, Any] = {}
    exec(compile(_DELEGATING, "<watched>", "exec"), space)
    first, second, bare = (space["Owner"]() for _ in range(3))
    bare.inner = lambda work: work()
    known = {id(first): 7}
    asked: list[object] = []

    def identify(owner: object) -> int:
        asked.append(owner)
        return 8

    watch = Watch([WatchedFunction(space["Owner"].call.__code__, identify, delegates=True)], known)
    recorder = LineCollector(lambda _: False, by_events=by_events, watch=watch)
    recorder.start()
    first.call(lambda: second.call(lambda: first.call(note)))
    bare.call(note)
    recorder.stop()
    (calls,) = watch.take()
    assert list(zip(calls.number, calls.caller, strict=True)) == [(7, -1), (8, 0), (7, 1), (8, -1)]
    assert asked == [second, bare]


def check_long_tapes(*, by_events: bool) -> None:
    """Marks that were packed on the way are followed as those at the end are."""
    recorder = collector(by_events=by_events)
    recorder.start()
    found.clear()
    for _ in range(3000):
        note()
    timelines = recorder.stop().timelines()
    assert timelines.marks > 3000
    assert not timelines.truncated
    assert not (bad := wrong(timelines)), bad[:3]


CHECKS = (
    check_lines,
    check_stacks,
    check_budget,
    check_fork,
    check_other_thread_stops,
    check_tracer_is_restored,
    check_taken_tools_are_said,
    check_watched_calls,
    check_watched_calls_keep_to_the_budget,
    check_a_delegating_function_is_told_by_what_it_calls,
    check_long_tapes,
)

if __name__ == "__main__":
    events = BY_EVENTS and "trace" not in sys.argv[1:]
    for check in CHECKS:
        check(by_events=events)
    sys.stdout.write(f"{len(CHECKS)} checks, {'events' if events else 'trace'}\n")
