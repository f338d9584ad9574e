"""What a headless import loads: neither torch nor Textual, whatever the module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys, importlib
importlib.import_module({module!r})
print(*(name for name in {heavy!r} if name in sys.modules))
"""


def loaded(module: str, heavy: tuple[str, ...], folder: Path) -> list[str]:
    code = CODE.format(module=module, heavy=heavy)
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return result.stdout.split()


@pytest.mark.parametrize(
    "module",
    [
        "neuron_explorer",
        "neuron_explorer.analyzers",
        "neuron_explorer.cli",
        "neuron_explorer.collectors.capture.calibrate",
        "neuron_explorer.collectors.costs",
        "neuron_explorer.collectors.importers",
        "neuron_explorer.devices.roof",
        "neuron_explorer.loading",
        "neuron_explorer.reports",
        "neuron_explorer.trace",
    ],
)
def test_headless_imports_load_neither_torch_nor_textual(module: str, tmp_path: Path) -> None:
    assert loaded(module, ("torch", "textual"), tmp_path) == []


def test_help_pays_for_no_query_engine(tmp_path: Path) -> None:
    assert loaded("neuron_explorer.cli", ("duckdb", "pyarrow", "polars"), tmp_path) == []
