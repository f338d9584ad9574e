"""`@profile()`: a call is recorded while it runs, whatever kind of function it is of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.collectors.capture.session import profile  # noqa: E402
from neuron_explorer.errors import UsageError  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]


@pytest.fixture
def session(tmp_path: Path) -> profile:
    return profile(output=tmp_path, source="off")


def names(session: profile) -> list[str]:
    rows = session.trace.sql("SELECT name FROM ops ORDER BY start_ns").to_pylist()
    return [row["name"] for row in rows]


def test_a_function_keeps_its_name_and_result(session: profile) -> None:
    @session
    def work(count: int) -> int:
        """What it does."""
        torch.ones(count).sin()
        return count

    assert [work(2), work(3)] == [2, 3]
    assert (work.__name__, work.__doc__) == ("work", "What it does.")
    assert [path.name for path in session.paths] == ["window=000.parquet", "window=001.parquet"]
    assert "aten::sin" in names(session)


def test_a_coroutine_is_recorded_while_it_runs(session: profile) -> None:
    @session
    async def work() -> int:
        torch.ones(2).sin()
        await asyncio.sleep(0)
        torch.ones(2).cos()
        return 3

    waiting = work()
    torch.ones(2).tan()
    assert asyncio.run(waiting) == 3
    assert {"aten::sin", "aten::cos"} <= set(names(session))
    assert "aten::tan" not in names(session)


def test_a_generator_is_recorded_while_it_runs(session: profile) -> None:
    @session
    def work() -> Generator[int, int, int]:
        torch.ones(2).sin()
        got = yield 1
        torch.ones(2).cos()
        return got

    waiting = work()
    torch.ones(2).tan()
    assert next(waiting) == 1
    with pytest.raises(StopIteration) as ended:
        waiting.send(5)
    assert ended.value.value == 5
    assert {"aten::sin", "aten::cos"} <= set(names(session))
    assert "aten::tan" not in names(session)


def test_a_generator_that_nobody_finishes_is_saved(session: profile) -> None:
    @session
    def work() -> Generator[int]:
        torch.ones(2).sin()
        yield 1
        torch.ones(2).cos()

    waiting = work()
    next(waiting)
    waiting.close()
    assert "aten::sin" in names(session)


def test_an_async_generator_is_refused(session: profile) -> None:
    async def work() -> AsyncGenerator[int]:
        yield 1

    with pytest.raises(UsageError, match="work is an async generator"):
        session(work)
