"""From a PyTorch profiler trace to the source lines that waste the accelerator.

Names below load on first use, so `import neuron_explorer` stays cheap and never pulls in
DuckDB, Textual or torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_explorer.collectors.capture.compiler import (
        enable_compile_sources as enable_compile_sources,
    )
    from neuron_explorer.collectors.capture.session import profile as profile
    from neuron_explorer.collectors.capture.window import trace_handler as trace_handler
    from neuron_explorer.collectors.dryrun import dryrun as dryrun
    from neuron_explorer.collectors.queue_sources import (
        register_queue_source as register_queue_source,
    )
    from neuron_explorer.errors import NeuronExplorerError as NeuronExplorerError
    from neuron_explorer.findings import Finding as Finding
    from neuron_explorer.loading import load as load
    from neuron_explorer.trace import Trace as Trace

__all__ = [
    "Finding",
    "NeuronExplorerError",
    "Trace",
    "__version__",
    "dryrun",
    "enable_compile_sources",
    "load",
    "profile",
    "register_queue_source",
    "trace_handler",
]

__version__ = "0.1.0"

_HOME = {
    "Finding": "neuron_explorer.findings",
    "NeuronExplorerError": "neuron_explorer.errors",
    "Trace": "neuron_explorer.trace",
    "dryrun": "neuron_explorer.collectors.dryrun",
    "enable_compile_sources": "neuron_explorer.collectors.capture.compiler",
    "load": "neuron_explorer.loading",
    "profile": "neuron_explorer.collectors.capture.session",
    "register_queue_source": "neuron_explorer.collectors.queue_sources",
    "trace_handler": "neuron_explorer.collectors.capture.window",
}

if not TYPE_CHECKING:  # else every misspelt import would type-check as `object`

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            value: object = getattr(import_module(_HOME[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "torch":
                raise
            hint = "pip install 'neuron-explorer[torch]'"
            raise ImportError(f"neuron_explorer.{name} records with torch: {hint}") from error
        globals()[name] = value
        return value
