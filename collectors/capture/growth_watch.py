"""Looks at a recording's growth where the program calls nothing of ours: between two steps."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

EVERY_S = 0.25
"""At a million events a second, some hundred MiB may come between two looks."""

Act = Callable[[], None]

_waiting: deque[Act] = deque()


def _run(_nothing: int | None) -> int:
    _waiting.popleft()()
    return 0


# PYFUNCTYPE: it is called with the interpreter lock held. Kept for good, since Python calls it late
_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_run)


def on_main_thread(act: Act) -> bool:
    """Have the main thread call this between two of its instructions; False where it cannot be."""
    _waiting.append(act)
    if ctypes.pythonapi.Py_AddPendingCall(_CALL, None) == 0:
        return True
    _waiting.remove(act)
    return False


class GrowthWatch:
    """A thread that looks while a window is recorded, and has the main thread end the window.

    Args:
        is_over: Whether the window has grown too large.
        end: Ends it.
    """

    def __init__(self, is_over: Callable[[], bool], end: Act) -> None:
        self._is_over, self._end = is_over, end
        self._stopped: threading.Event | None = None

    def start(self) -> None:
        """A window begins on the calling thread; without effect where that is not the main one.

        torch ends a window on the thread that began it, and no other can be reached from without.
        """
        self.stop()
        if threading.current_thread() is not threading.main_thread():
            return
        stopped = self._stopped = threading.Event()
        look = partial(self._look_on, stopped)
        try:
            threading.Thread(target=look, name="neuron_explorer growth", daemon=True).start()
        except RuntimeError:
            # the interpreter exits, and begins no thread any more
            self._stopped = None

    def stop(self) -> None:
        """The window has ended, or this is a forked child, where the thread is not."""
        if self._stopped is not None:
            self._stopped.set()
            self._stopped = None

    def _look_on(self, stopped: threading.Event) -> None:
        while not stopped.wait(EVERY_S):
            if self._is_over():
                on_main_thread(self._end)
