"""Which profiler of this process records: one of ours, or torch's own.

torch has room for one. Preparing a second one ends the first without a word; what the first
one holds is then empty, and exporting it crashes the process. So whoever prepares is watched
from our first session on, and a session of ours makes room while it still has its events.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch.autograd.profiler

import neuron_explorer
from neuron_explorer.collectors.linking.frames import parse_frame

_OWN = (str(Path(neuron_explorer.__file__).parent), str(Path(__file__).parent))
torch_profiler: Any = torch.autograd.profiler
_WATCHED = ("_prepare_profiler", "_run_on_profiler_start", "_disable_profiler")


class Session(Protocol):
    """One of ours, as those see it that end it."""

    opened_at: str
    """`file:line` that started it."""

    def make_room(self, place: str) -> None:
        """End the window: another profiler opens at `place` (`file:line`)."""

    def finish(self, why: str) -> None:
        """Save what exists: the process ends."""

    def abandon(self) -> None:
        """Forget everything: this is a forked child, and the parent records."""


class Sessions:
    """Everybody who records, or is about to, in this process."""

    def __init__(self) -> None:
        self.active: Session | None = None
        """Ours, from its start to its stop."""
        self._other: weakref.ref[Any] | None = None
        self._other_place = ""
        self._left_over: set[int] = set()
        """Threads on which torch still records for nobody."""
        self._local = threading.local()
        self._watching = False

    @contextmanager
    def ours(self) -> Iterator[None]:
        """What is asked of torch in here is asked by one of our sessions."""
        before = self._calling
        self._local.calling = True
        try:
            yield
        finally:
            self._local.calling = before

    @property
    def _calling(self) -> bool:
        return getattr(self._local, "calling", False)

    def other(self) -> str | None:
        """Where a profiler that is not ours was opened, if one records or warms up."""
        if self._other is not None and self._other() is not None:
            return self._other_place
        if threading.get_ident() in self._left_over:
            return None
        if torch._C._autograd._profiler_enabled() or torch_profiler._is_profiler_enabled:
            return "an unknown place"
        return None

    def leave_over(self, thread: int) -> None:
        """Note that torch goes on recording on a thread, which nobody can stop from another."""
        self._left_over.add(thread)
        torch_profiler._run_on_profiler_stop()

    def abandon(self) -> None:
        """Begin anew in a forked child."""
        self._other = None
        if self.active is not None or torch._C._autograd._profiler_enabled():
            self.leave_over(threading.get_ident())
        self.active = None

    def watch(self) -> None:
        """See from now on who opens and closes torch's profiler; each call goes through."""
        if self._watching:
            return
        self._watching = True
        prepared, started, ended = (getattr(torch_profiler, name) for name in _WATCHED)
        torch_profiler._prepare_profiler = self._before(prepared, self._opened)
        torch_profiler._run_on_profiler_start = self._before(started, self._opened)
        torch_profiler._disable_profiler = self._before(ended, self._closed)

    def _before(
        self, call: Callable[..., Any], notice: Callable[[Any], None]
    ) -> Callable[..., Any]:
        @functools.wraps(call)
        def noticed(*args: Any, **kwargs: Any) -> Any:
            if not self._calling:
                notice(sys._getframe(1).f_locals.get("self"))
            return call(*args, **kwargs)

        return noticed

    def _opened(self, profiler: Any) -> None:
        self._left_over.discard(threading.get_ident())
        self._other = None if profiler is None else weakref.ref(profiler)
        self._other_place = calling_place()
        if self.active is not None:
            self.active.make_room(self._other_place)

    def _closed(self, _profiler: Any) -> None:
        self._other = None


def calling_place() -> str:
    """`file:line` of the innermost calling frame that is neither torch's, Python's nor ours."""
    frame = sys._getframe(1)
    found = frame
    while True:
        file = frame.f_code.co_filename
        if not file.startswith(_OWN):
            parsed = parse_frame(f"{file}(1): f")
            if parsed is not None and parsed.model:
                found = frame
                break
        if frame.f_back is None:
            break
        frame = frame.f_back
    return f"{found.f_code.co_filename}:{found.f_lineno}"


sessions = Sessions()
