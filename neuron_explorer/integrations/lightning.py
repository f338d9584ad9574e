"""Lightning: `Trainer(profiler=NeuronExplorerProfiler())` writes `trace.parquet`.

For `lightning.pytorch` and for `pytorch_lightning`, whichever is installed.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neuron_explorer.integrations.following import Following

try:
    from lightning.pytorch.profilers import Profiler
except ImportError:
    from pytorch_lightning.profilers import Profiler  # type: ignore[assignment]

_EPOCH, _BATCH, _NEXT = "run_training_epoch", "run_training_batch", "_next"
_OTHER_BATCHES = ("validation_step", "test_step", "predict_step")
"""How Lightning calls what it does; the last ones follow the name of a strategy."""


class NeuronExplorerProfiler(Profiler):
    """Records a few complete steps: input, forward, backward and optimizer.

    In `fit` a step ends where the trainer's global step grows, however many batches it
    accumulates; validation in between belongs to the step that follows. In `validate`, `test`
    and `predict` a step is a batch, and the trace is called `trace.test.parquet` and so on.

    Args:
        output: A `.parquet` path, or a folder; as in `neuron_explorer.profile`.
        wait: Steps to leave out at the beginning.
        warmup: Steps that run under the profiler but are not kept.
        active: Steps to record.
        options: Any other argument of `neuron_explorer.profile`.
    """

    _lightning_module: Any = None
    """Lightning sets it before it calls `setup`."""

    def __init__(
        self,
        output: str | Path = "trace.parquet",
        *,
        wait: int = 1,
        warmup: int = 1,
        active: int = 3,
        **options: Any,
    ) -> None:
        super().__init__()
        self._following = Following(output, (wait, warmup, active), options)
        self._batches = 0

    @property
    def paths(self) -> list[Path]:
        """Traces written so far."""
        return self._following.paths

    @contextmanager
    def profile(self, action_name: str) -> Generator[str]:
        """As in Lightning, which says nothing to a profiler when an exception ends a training."""
        try:
            with super().profile(action_name):
                yield action_name
        except BaseException:
            if action_name == _EPOCH:
                self._following.end()
            raise

    def start(self, action_name: str) -> None:
        """An action begins; the first of a loop is where recording does."""
        if self._stage == "fit":
            if action_name == _EPOCH:
                self._following.begin(self._global_step())
        elif self._stage and action_name.endswith(_NEXT):
            self._following.begin(stage=getattr(self._stage, "value", self._stage))

    def stop(self, action_name: str) -> None:
        """An action ends, and maybe a step with it."""
        if self._stage == "fit":
            if action_name == _BATCH:
                self._following.follow(self._global_step())
        elif action_name.startswith("[Strategy]") and action_name.endswith(_OTHER_BATCHES):
            self._batches += 1
            self._following.follow(self._batches)

    def setup(self, stage: str, *args: Any, **kwargs: Any) -> None:
        """A `fit`, `validate`, `test` or `predict` begins."""
        super().setup(stage, *args, **kwargs)
        self._batches = 0

    def summary(self) -> str:
        """Write what a schedule longer than the loop has left; Lightning logs where it lies."""
        return "".join(f"Trace written: {path}\n" for path in self._following.end())

    def _global_step(self) -> int:
        return int(self._lightning_module.trainer.global_step)
