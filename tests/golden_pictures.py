"""Pictures of screens that tests hold against files a person can open: tests/tui/golden/*.svg."""

from __future__ import annotations

import difflib
import re
from itertools import groupby
from pathlib import Path

import pytest
from drawn_cells import cells_of

GOLDEN = Path(__file__).parent / "tui" / "golden"

_HOW = """{name} no longer looks as it did: {what}.
  before: {golden}
  now:    {fresh}
Open both in a browser. If the new one is right: pytest tests/tui --update-pictures
{changed}"""

_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_CLIPS = re.compile(r"<clipPath.*?</clipPath>\s*", re.DOTALL)
_CLIPPED = re.compile(r' clip-path="[^"]*"')
_APP_ID = re.compile(r"terminal-\d+-")
_CRISP = re.compile(' shape-rendering="crispEdges"')
_GROUNDS = re.compile(r'(?:<rect fill="[^"]*" x="[^"]*" y="[^"]*" width="[^"]*" height="24.65"/>)+')
_GROUND = re.compile(r'fill="([^"]*)" x="([^"]*)" y="([^"]*)" width="([^"]*)"')
_BLANKS = re.compile(r"\n\s+")


def plain_picture(svg: str) -> str:
    """The picture without what says nothing of the screen: web fonts, clips, the number of the app.

    Colours and places of all cells stay, so that a browser shows it as before; a ground that was
    drawn in pieces is one, so that only what is seen counts.
    """
    # rich keeps a clip for every line, a third of the file; no line of ours leaves its own
    for noise in (_FONTS, _CLIPS, _CLIPPED, _APP_ID, _CRISP):
        svg = noise.sub("", svg)
    svg = _GROUNDS.sub(_joined, svg).replace("</text><text", "</text>\n<text")
    svg = svg.replace("<svg ", '<svg shape-rendering="crispEdges" ', 1)
    return _BLANKS.sub("\n", svg) + "\n"


def _joined(grounds: re.Match[str]) -> str:
    """One rectangle for neighbours of one colour in a line."""
    cells = [each.groups() for each in _GROUND.finditer(grounds[0])]
    rectangles = []
    for (fill, y), same in groupby(cells, key=lambda cell: (cell[0], cell[2])):
        row = list(same)
        width = float(row[-1][1]) + float(row[-1][3]) - float(row[0][1])
        place = f'x="{row[0][1]}" y="{y}" width="{width:.1f}" height="24.65"'
        rectangles.append(f'\n<rect fill="{fill}" {place}/>')
    return "".join(rectangles)


def check_picture(name: str, svg: str, request: pytest.FixtureRequest) -> None:
    """Hold a screen against `golden/<name>.svg`, colours and all.

    Raises:
        AssertionError: it looks otherwise; says where both pictures are and what differs.
    """
    golden = GOLDEN / f"{name}.svg"
    drawn = plain_picture(svg)
    if request.config.getoption("--update-pictures", default=False):
        golden.write_text(drawn, encoding="utf-8", newline="\n")
    before = golden.read_text("utf-8") if golden.exists() else ""
    if drawn != before:
        pytest.fail(_difference(golden, before, drawn, request), pytrace=False)


def _difference(golden: Path, before: str, drawn: str, request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    fresh = folder / golden.name
    fresh.write_text(drawn, encoding="utf-8", newline="\n")
    old, new = (cells_of(svg) if svg else "" for svg in (before, drawn))
    changed = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))
    what = "its text" if changed else "only its colours, or how its text is cut into pieces"
    if not changed:
        lines = before.splitlines(), drawn.splitlines()
        changed = list(difflib.unified_diff(*lines, lineterm="", n=0))
    return _HOW.format(
        name=golden.stem,
        what=what,
        golden=golden,
        fresh=fresh,
        changed="\n".join(changed[2:]),
    )
