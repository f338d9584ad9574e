"""What a headless import loads: neither torch nor Textual, whatever the module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from builders import H100, kernel, write_trace

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
        "neuron_explorer.exports.trace_event",
        "neuron_explorer.commands.export",
        "neuron_explorer.loading",
        "neuron_explorer.pytest_plugin",
        "neuron_explorer.reports",
        "neuron_explorer.trace",
    ],
)
def test_headless_imports_load_neither_torch_nor_textual(module: str, tmp_path: Path) -> None:
    assert loaded(module, ("torch", "textual"), tmp_path) == []


def test_the_server_for_agents_loads_neither_torch_nor_textual(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="the MCP SDK is not installed")
    assert loaded("neuron_explorer.mcp.server", ("torch", "textual"), tmp_path) == []
    assert loaded("neuron_explorer.commands.mcp", ("torch", "textual"), tmp_path) == []


def test_opening_a_trace_does_not_pay_for_pandas(tmp_path: Path) -> None:
    """pyarrow imports it by itself as soon as it is given lists."""
    pytest.importorskip("pandas", reason="pandas is not installed")
    trace = write_trace(tmp_path / "t.parquet", [kernel(0, 10)], {"devices": [H100]})
    code = (
        f"import sys, neuron_explorer; trace = neuron_explorer.load({str(trace)!r})\n"
        "print(len(trace.rows('SELECT * FROM device_chips')), 'pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


def test_help_pays_for_no_query_engine(tmp_path: Path) -> None:
    assert loaded("neuron_explorer.cli", ("duckdb", "pyarrow", "polars"), tmp_path) == []
