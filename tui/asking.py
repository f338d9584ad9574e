"""How the app and its screens ask: the answer comes back on the drawing thread, or not at all."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from textual.dom import DOMNode
from textual.worker import Worker

from neuron_explorer.tui.data import Answer, Ask, Job

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer

T = TypeVar("T")

PATIENCE_S = 0.15
"""A question that takes longer is shown to be at work; a shorter one would only flicker."""


class Asking(DOMNode):
    """A node that asks. What it asks about is a topic: the newest question of a topic wins."""

    @property
    def explorer(self) -> Explorer:
        return cast("Explorer", self.app)

    @cached_property
    def _asked_s(self) -> dict[str, float]:
        """When each topic was asked about last."""
        return {}

    def ask(
        self,
        topic: str,
        job: Job[T],
        then: Callable[[T], None],
        failed: Callable[[str], None] | None = None,
        *,
        rest_s: float = 0,
    ) -> None:
        """Run `job` in a thread and hand what it gives to `then`, on this thread.

        Args:
            topic: Ends the question asked before about the same topic of this node.
            job: Asks the trace; must not touch any widget.
            then: Draws.
            failed: Hears why there is no answer; by default the screen says it in one line.
            rest_s: Where the topic was asked about less than that ago, this waits until nobody has
                asked about it again for so long: only the first and the last of a row of questions
                are worth an answer.
        """
        heard = failed or self.explorer.complain
        now = time.monotonic()
        wait_s = rest_s if now - self._asked_s.get(topic, -math.inf) < rest_s else 0
        self._asked_s[topic] = now

        # called when the worker begins: what a newer question ends before that was never there
        async def asking() -> None:
            await self._asking(job, then, heard, wait_s)

        _: Worker[None] = self.run_worker(asking, group=topic, exclusive=True)

    async def _asking(
        self, job: Job[T], then: Callable[[T], None], failed: Callable[[str], None], wait_s: float
    ) -> None:
        explorer = self.explorer
        ask = Ask(explorer.trace)
        explorer.pending += 1
        try:
            await asyncio.sleep(wait_s)
            answer = await self._answer(ask, job)
            with explorer.batch_update():
                if answer.problem:
                    failed(answer.problem)
                else:
                    then(cast("T", answer.value))
                await self._messages_taken()
            self.screen.check_idle()
        finally:
            ask.stop()
            explorer.pending -= 1

    def paint_together(self) -> None:
        """Hold the next paint until the messages that this node sends now have been taken.

        What a screen draws because of a message of its widgets would come a frame or two later.
        """
        held = ExitStack()
        held.enter_context(self.explorer.batch_update())

        async def taken() -> None:
            with held:
                await self._messages_taken()
            self.screen.check_idle()

        _: Worker[None] = self.run_worker(taken)

    async def _messages_taken(self) -> None:
        """Until this node and its screen have done what they were told."""
        for node in (self, self.screen):
            taken = asyncio.Event()
            if node.call_later(taken.set):
                await taken.wait()

    async def _answer(self, ask: Ask, job: Job[T]) -> Answer[T]:
        future = self.explorer.questions.start(ask, job)
        done, _ = await asyncio.wait([future], timeout=PATIENCE_S)
        if not done:
            with self.explorer.working():
                await asyncio.wait([future])
        return future.result()
