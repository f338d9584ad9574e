"""torch's profiler, safe to open anywhere: where it cannot record, it does not, and says so."""

from __future__ import annotations

import threading
import warnings
from enum import Enum, auto
from typing import Any

from torch.profiler import profile as torch_profile

from neuron_explorer.collectors.capture.companions import Remark
from neuron_explorer.collectors.capture.growth import Growth
from neuron_explorer.collectors.capture.growth_watch import GrowthWatch
from neuron_explorer.collectors.capture.guards import busy, torch_prepares, undisturbed
from neuron_explorer.collectors.capture.sessions import sessions
from neuron_explorer.collectors.capture.window import PARTLY, Beside, attempt


class Phase(Enum):
    """How far one window is."""

    OFF = auto()
    PREPARED = auto()
    RECORDING = auto()
    ENDED = auto()
    """What was recorded is held."""


class Recording(torch_profile):
    """Windows of torch's profiler, with what records beside it.

    Whatever torch is asked for here is asked for only where it can be had, since torch
    itself loses the trace, or crashes, where two profilers meet or threads are mixed up.
    """

    def __init__(self, beside: Beside, growth: Growth, *, all_threads: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beside = beside
        self._growth = growth
        self._ending = threading.RLock()
        """Held while a window ends: with `all_threads` two threads may want that at once."""
        self._growth_watch = GrowthWatch(lambda: growth.over() is not None, self._end_unasked)
        self._all_threads = all_threads
        self._phase = Phase.OFF
        self._thread = 0
        self._cut: Remark | None = None
        """Why the window ended early."""
        self._taken = False
        """Whether another thread's profiler has taken torch away from this one."""

    def prepare_trace(self) -> None:
        """As in torch, unless another profiler records: then this window is left out."""
        self._phase, self._cut, self._taken = Phase.OFF, None, False
        place = sessions.other()
        if place is not None:
            warnings.warn(
                f"torch's own profiler is open, since {place}: this window is not recorded, "
                "for torch has room for one",
                stacklevel=2,
            )
            return
        torch_prepares()
        with undisturbed(), sessions.ours():
            super().prepare_trace()
        self._phase = Phase.PREPARED

    def start_trace(self) -> None:
        """Begin to record, as in torch; and all that records beside it."""
        if self._phase is Phase.PREPARED and self._cut is not None:
            # somebody else's profiler has been here, and took what was prepared
            self.prepare_trace()
        if self._phase is not Phase.PREPARED:
            return
        with undisturbed():
            try:
                with sessions.ours():
                    super().start_trace()
            except RuntimeError as error:
                # torch still records here for somebody who stopped elsewhere
                sessions.leave_over(threading.get_ident())
                warnings.warn(f"nothing is recorded: {error}", stacklevel=2)
                self._phase = Phase.OFF
                return
            self._phase, self._thread = Phase.RECORDING, threading.get_ident()
            self._growth.start()
            self._growth_watch.start()
            attempt(self._beside.start, PARTLY)

    def stop_trace(self) -> None:
        """End to record, as in torch; harmless where nothing is recorded."""
        with undisturbed(), self._ending:
            if self._phase is not Phase.RECORDING:
                return
            self._phase = Phase.OFF
            self._growth_watch.stop()
            attempt(self._beside.stop, PARTLY)
            if not self._here():
                sessions.leave_over(self._thread)
                warnings.warn(
                    "the profile was not written: it was started on another thread than it is "
                    "stopped on, where torch does not find it; use all_threads=True",
                    stacklevel=2,
                )
                return
            if self._taken:
                # asked for its events now, torch crashes
                sessions.leave_over(self._thread)
                return
            with sessions.ours():
                super().stop_trace()
            self._phase = Phase.ENDED

    def make_room(self, place: str) -> None:
        """Another profiler opens: end the window while its events can still be had."""
        self._cut = ("window_cut", f"another profiler was opened at {place}", 1)
        if self._phase is Phase.RECORDING:
            kept = "ends there" if self._here() else "is lost, being another thread's"
            warnings.warn(
                f"torch's own profiler is opened at {place}: this window of neuron_explorer "
                f"{kept}, for torch has room for one",
                stacklevel=2,
            )
            self._taken = not self._here()
            if not self._taken:
                attempt(self.stop_trace, PARTLY)

    def check_growth(self) -> None:
        """End the window where it has grown too large."""
        grown = self._growth.over() if self._phase is Phase.RECORDING and self._here() else None
        if grown is None:
            return
        self._cut = ("budget_reached", f"the process had grown by {grown >> 20} MiB", 1)
        warnings.warn(
            f"recording ends here: the process has grown by {grown >> 20} MiB since the window "
            "began; record fewer steps, or raise max_growth",
            stacklevel=2,
        )
        attempt(self.stop_trace, PARTLY)

    def _end_unasked(self) -> None:
        """The same, called between two instructions of whatever the program does."""
        if not busy():
            attempt(self.check_growth, PARTLY)

    def _here(self) -> bool:
        return self._all_threads or threading.get_ident() == self._thread

    def _forget(self) -> None:
        """This is a forked child: what torch holds here is the parent's."""
        self._phase, self._cut = Phase.OFF, None
        self._growth_watch.stop()
        self._ending = threading.RLock()
        self.step_rec_fn = None
