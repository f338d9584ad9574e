from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuron_explorer.errors import QueryError
from neuron_explorer.trace import Trace
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.data import Answer, Ask, Job, Questions, StoppedError, one_line
from neuron_explorer.tui.picture import settled

FOREVER = (
    "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b"
    " WHERE (a.range + b.range) % 7 < a.range % 5"
)


@pytest.fixture(scope="module")
def trace(tiny: Path) -> Iterator[Trace]:
    with Trace.open([tiny]) as opened:
        yield opened


def answered(ask: Ask, job: Job[object]) -> Answer[object]:
    questions = Questions()

    async def wait() -> Answer[object]:
        return await questions.start(ask, job)

    try:
        return asyncio.run(wait())
    finally:
        questions.stop()
        questions.join()


def test_a_job_runs_off_the_thread_that_draws(trace: Trace) -> None:
    answer = answered(Ask(trace), lambda ask: (ask.rows("SELECT 1 AS one"), threading.get_ident()))
    assert isinstance(answer.value, tuple)
    rows, thread = answer.value
    assert rows == [{"one": 1}]
    assert thread != threading.get_ident()


def test_an_error_is_one_line(trace: Trace) -> None:
    answer = answered(Ask(trace), lambda ask: ask.rows("SELECT nothing FROM work"))
    assert "nothing" in answer.problem
    assert "\n" not in answer.problem
    assert one_line(QueryError("refused:  it\nwrites", hint="use SELECT")) == (
        "refused: it writes; use SELECT"
    )


def test_a_stopped_question_is_interrupted(trace: Trace) -> None:
    ask = Ask(trace)
    threading.Timer(0.2, ask.stop).start()
    began = time.monotonic()
    answer = answered(ask, lambda asked: asked.rows(FOREVER))
    assert answer.problem == "stopped"
    assert time.monotonic() - began < 20


def test_one_stopped_in_line_never_starts(trace: Trace) -> None:
    ask, ran = Ask(trace), threading.Event()
    ask.stop()
    assert answered(ask, lambda _: ran.set()).problem == "stopped"
    assert not ran.is_set()
    with pytest.raises(StoppedError):
        ask.rows("SELECT 1")


def test_to_stop_what_is_over_does_nothing(trace: Trace) -> None:
    ask = Ask(trace)
    ask.rows("SELECT 1")
    ask.stop()
    interrupts: list[object] = []
    trace.sql("SELECT 1", started=interrupts.append)
    assert len(interrupts) == 1
    interrupts[0]()  # type: ignore[operator]


def test_threads_end_with_their_questions(trace: Trace) -> None:
    before = set(threading.enumerate())
    answered(Ask(trace), lambda ask: ask.rows("SELECT 1"))
    assert set(threading.enumerate()) <= before


def test_of_a_row_of_questions_the_first_and_the_last_are_answered(tiny: Path) -> None:
    """Whoever presses one key waits for nothing, and whoever holds it reads only the last."""
    told: list[int] = []

    async def hold() -> None:
        async with explorer.run_test() as pilot:
            await settled(pilot)
            for number in range(5):
                explorer.ask("held", lambda _, n=number: n, told.append, rest_s=0.5)  # type: ignore[misc]
                await asyncio.sleep(0.1 if number == 0 else 0)
            assert told == [0]
            await settled(pilot)

    explorer = Explorer([str(tiny)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neuron_explorer.tui.judging.analyzers", dict)
        asyncio.run(hold())
    explorer.close()
    assert told == [0, 4]
