"""The findings as one HTML file that needs no network: `analyze --format html`."""

from __future__ import annotations

import importlib.util

from neuron_explorer.errors import NeuronExplorerError

_NEEDED = ("bokeh", "jinja2")


def check_installed() -> None:
    """Say what to install, before any time is spent.

    Raises:
        NeuronExplorerError: a library that only this report needs is not installed.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise NeuronExplorerError(
            f"an HTML report needs {' and '.join(missing)}, not installed here",
            hint="pip install 'neuron-explorer[html]'",
        )
