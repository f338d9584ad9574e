"""The bar of a long job; tests/test_cli_reports.py looks at it on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress as RichProgress

from neuron_explorer.progress import TerminalBar


@pytest.mark.parametrize(("width", "room"), [(40, 26), (80, 26), (120, 66)])
def test_a_long_file_name_pushes_nothing_out_of_the_line(width: int, room: int) -> None:
    with RichProgress(console=Console(file=io.StringIO(), width=width)) as bars:
        bar = TerminalBar(bars)
        bar.start("reading " + "x" * 100, 10)
        assert bars.tasks[0].description == "reading " + "x" * (room - 11) + "..."
        bar.start("reading a.json", 10)
        assert bars.tasks[0].description == "reading a.json"
