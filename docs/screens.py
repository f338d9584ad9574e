"""Draws docs/overview.svg, source.svg and timeline.svg: screens of the terminal interface.

The first two show a trace of the demo, recorded here; the third any trace.

usage: make screens TRACE=trace.json.gz
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from picture import plain_svg

from neuron_explorer.collectors.capture import demo
from neuron_explorer.tui.picture import picture

FOLDER = Path(__file__).resolve().parent
SIZE = (90, 26)
HOME = Path(tempfile.gettempdir()) / "demo"
"""Stands in the picture, so it has no made-up name."""


def record(script: Path, trace: Path) -> None:
    """A trace of the demo's step, as that script would give it."""
    shutil.copyfile(demo.__file__, script)
    names: dict[str, object] = {"__name__": "train", "__file__": str(script)}
    exec(compile(script.read_text("utf-8"), str(script), "exec"), names)
    step = names["record"]
    assert callable(step)
    step(trace)


def draw(trace: Path, *screens: str) -> None:
    """Write pictures beside this file; the trace goes by its bare name."""
    with chdir(trace.parent):
        for screen in screens:
            svg = plain_svg(picture([trace.name], screen, SIZE))
            (FOLDER / f"{screen}.svg").write_text(svg, encoding="utf-8", newline="\n")


def main(trace: Path) -> None:
    """Draw all three."""
    os.environ |= {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
    HOME.mkdir()
    try:
        record(HOME / "train.py", HOME / "trace.parquet")
        draw(HOME / "trace.parquet", "overview", "source")
    finally:
        shutil.rmtree(HOME)
    draw(trace, "timeline")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
