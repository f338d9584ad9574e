"""A `profile()` session that follows the steps of somebody else's training loop."""

from __future__ import annotations

import atexit
from pathlib import Path
from typing import Any

from torch.profiler import schedule

from neuron_explorer.collectors.capture.outputs import Outputs
from neuron_explorer.collectors.capture.session import profile


class Following:
    """Records some steps of each training; no method minds being called twice or too early."""

    def __init__(
        self, output: str | Path, steps: tuple[int, int, int], options: dict[str, Any]
    ) -> None:
        """Nothing is recorded or written yet.

        Args:
            output: As in `profile()`.
            steps: Steps to wait, to warm up, and to record.
            options: Any other argument of `profile()`; a `schedule` takes the place of `steps`.
        """
        wait, warmup, active = steps
        plan = schedule(wait=wait, warmup=warmup, active=active, repeat=1)
        self._options = {"schedule": plan} | options
        self._output = Path(output)
        self._session: profile | None = None
        self._outputs: dict[str, Outputs] = {}
        """Of each stage, whose next session leaves the files of the earlier ones alone."""
        self._at = 0
        self.paths: list[Path] = []
        """Traces written so far."""

    def begin(self, number: int = 0, stage: str = "") -> None:
        """Start, unless it has.

        Args:
            number: Steps that the training has behind it.
            stage: What runs, where it is no training; such a trace has a name of its own.

        Raises:
            OutputError: The output cannot be written.
        """
        if self._session is not None:
            return
        output = self._output
        if stage:
            output = output.with_name(f"{output.stem}.{stage}{output.suffix}")
        session = profile(output=output, **self._options)
        session.outputs = self._outputs.setdefault(stage, session.outputs)
        session.start()
        self._session, self._at = session, number
        # a training that an exception ends may not say so; what was recorded is kept
        atexit.register(self.end)

    def follow(self, number: int) -> None:
        """End a step where the training has more of them behind it than before."""
        if self._session is not None and number > self._at:
            self._at = number
            self._session.step()

    def end(self) -> list[Path]:
        """Stop, and write what has been recorded; returns the traces of this training."""
        session, self._session = self._session, None
        if session is None:
            return []
        atexit.unregister(self.end)
        session.stop()
        self.paths += session.paths
        return session.paths
