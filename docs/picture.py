"""Draws docs/analyze.svg: what a terminal of 80 columns shows of a trace.

usage: make picture TRACE=trace.json.gz
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stdout
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from neuron_explorer.cli import main

PICTURE = Path(__file__).with_name("analyze.svg")
WIDTH = 80
_CELL = 12.2
"""What rich takes as the width of a character, in the picture's units."""

_FONT_RULES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_INDENTED = re.compile(r'x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"([^>]*)>((?:&#160;)+)')


class _Terminal(io.StringIO):
    """Keeps what is written, as a terminal with colours would get it."""

    def isatty(self) -> bool:
        return True


def page(trace: Path, options: Sequence[str]) -> str:
    """The page of `analyze`, with its colours; the trace goes by its bare name."""
    os.environ |= {"COLUMNS": str(WIDTH), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    with chdir(trace.parent), redirect_stdout(_Terminal()) as shown:
        main(["analyze", trace.name, "--quiet", *options])
    return shown.getvalue()


def draw(trace: Path, options: Sequence[str]) -> None:
    """Write the picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    command = " ".join(["neuron-explorer analyze", trace.name, *options])
    console.print(Text.assemble(("$ ", "dim"), command), Text.from_ansi(page(trace, options)))
    svg = console.export_svg(title="neuron-explorer", theme=MONOKAI, unique_id="analyze")
    PICTURE.write_text(plain_svg(svg), encoding="utf-8", newline="\n")


def plain_svg(svg: str) -> str:
    """Without the web fonts of a server, and without blanks that some viewers swallow."""
    return _INDENTED.sub(_shifted, _FONT_RULES.sub("", svg))


def _shifted(text: re.Match[str]) -> str:
    x, y, length, rest, blanks = text.groups()
    indent = _CELL * blanks.count("&")
    place = f'x="{float(x) + indent:.1f}" y="{y}" textLength="{float(length) - indent:.1f}"'
    return f"{place}{rest}>"


if __name__ == "__main__":
    draw(Path(sys.argv[1]).resolve(), sys.argv[2:])
