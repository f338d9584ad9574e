"""The part of the package that records, for the commands that do: it needs torch."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

from neuron_explorer.errors import NeuronExplorerError

_QUIET_TORCH = {"TORCH_CPP_LOG_LEVEL": "ERROR", "KINETO_LOG_LEVEL": "6"}
"""torch reports to stderr that its profiler begins and ends."""


def capture_module(name: str) -> ModuleType:
    """A module of `collectors.capture`.

    Raises:
        NeuronExplorerError: torch is not installed.
    """
    quiet_torch()
    try:
        return import_module(f"neuron_explorer.collectors.capture.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise NeuronExplorerError(
            "recording needs torch, which is not installed",
            hint="pip install 'neuron-explorer[torch]'",
        ) from error


def quiet_torch() -> None:
    """Keep torch's own words off stderr; takes effect where torch is not imported yet."""
    for variable, value in _QUIET_TORCH.items():
        os.environ.setdefault(variable, value)
