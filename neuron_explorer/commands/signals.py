"""SIGTERM and SIGHUP end a command as Ctrl-C does: what it holds is given back first."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
ENDING = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
"""Windows has no SIGHUP."""

_SAME_S = 1.0
"""`timeout` sends its signal twice, and people press Ctrl-C twice: what follows another this soon
is the same wish, and must not end the tidying up."""


class Watch:
    """Which signal came."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._last_s = float("-inf")

    def received(self, number: int, _: FrameType | None) -> None:
        """Raise the interrupt that everything which holds something knows.

        Raises:
            KeyboardInterrupt: Unless one was raised a moment ago.
        """
        now = time.monotonic()
        same, self._last_s = now - self._last_s < _SAME_S, now
        if not same:
            self.number = number
            raise KeyboardInterrupt


@contextmanager
def watched() -> Iterator[Watch]:
    """Make signals that end a program interrupts, where nobody else has decided about them."""
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {n: signal.getsignal(n) for n in ENDING if signal.getsignal(n) in usual}
    for number in before:
        signal.signal(number, watch.received)
    try:
        yield watch
    finally:
        give_back()


def give_back() -> None:
    """Let signals do what they do in any Python program: somebody else's code runs now."""
    for number in ENDING:
        if isinstance(getattr(signal.getsignal(number), "__self__", None), Watch):
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
