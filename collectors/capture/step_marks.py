"""Steps of a session without a schedule: from one `step()` to the next.

torch marks steps (`ProfilerStep#n`) only where a schedule was given.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.capture.companions import Remark
from neuron_explorer.collectors.recorded import as_recorded

STEP = "ProfilerStep#"


class StepMarks:
    """When each step of a window ended; what comes after the last one is no step."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._threads: list[int] = []

    def start(self) -> None:
        """The first step begins."""
        self._times, self._threads = [time.time_ns()], []

    def stop(self) -> None:
        """Nothing to do: a step that did not end is none."""

    def mark(self) -> None:
        """A step ends and the next one begins, on the calling thread."""
        self._times.append(time.time_ns())
        self._threads.append(threading.get_native_id())

    def rows(self, clock: Alignment) -> pa.Table:
        """One annotation a step, as torch names them."""
        count = len(self._threads)
        times = clock.to_torch(np.array(self._times, np.int64))
        return as_recorded(
            {
                "role": ["framework/annotation"] * count,
                "name": [f"{STEP}{number}" for number in range(count)],
                "start_ns": times[:count],
                "duration_ns": np.diff(times),
                "tid": self._threads,
            }
        )

    def facts(self) -> Mapping[str, object]:
        return {}

    def remarks(self) -> Sequence[Remark]:
        return ()
