"""Hugging Face `Trainer`: `Trainer(..., callbacks=[ProfileCallback()])` writes `trace.parquet`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from neuron_explorer.integrations.following import Following


class ProfileCallback(TrainerCallback):
    """Records a few complete training steps: input, forward, backward and optimizer.

    A step is one of the trainer's global steps, however many batches it accumulates. Steps are
    counted from where this training begins, be it the middle of an interrupted one.

    Args:
        output: A `.parquet` path, or a folder; as in `neuron_explorer.profile`.
        wait: Steps to leave out at the beginning.
        warmup: Steps that run under the profiler but are not kept.
        active: Steps to record.
        options: Any other argument of `neuron_explorer.profile`.
    """

    def __init__(
        self,
        output: str | Path = "trace.parquet",
        *,
        wait: int = 1,
        warmup: int = 1,
        active: int = 3,
        **options: Any,
    ) -> None:
        self._following = Following(output, (wait, warmup, active), options)

    @property
    def paths(self) -> list[Path]:
        """Traces written so far."""
        return self._following.paths

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the names are the trainer's
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **_: Any,
    ) -> None:
        """Begin; what a failed training before this one left over is written first."""
        self._following.end()
        self._following.begin(state.global_step)

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **_: Any,
    ) -> None:
        """The optimizer has stepped."""
        self._following.follow(state.global_step)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Write what a schedule longer than the training has left."""
        self._following.end()
