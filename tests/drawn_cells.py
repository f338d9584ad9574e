"""The text of a picture of the terminal interface."""

from __future__ import annotations

from xml.etree import ElementTree as ET

_CELL = 12.2
"""Width of a cell in the SVG that Textual draws."""


def cells_of(svg: str) -> str:
    """The text of a picture, line by line, at its places."""
    root = ET.fromstring(svg)
    lines: dict[float, dict[float, str]] = {}
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        if "text-anchor" not in text.attrib:  # that is the title of the window
            row = lines.setdefault(float(text.attrib["y"]), {})
            row[float(text.attrib["x"])] = (text.text or "").replace("\xa0", " ")
    drawn = []
    for _, pieces in sorted(lines.items()):
        line = ""
        for x, piece in sorted(pieces.items()):
            line = line.ljust(round(x / _CELL)) + piece.rstrip("\n")
        drawn.append(line.rstrip())
    return "\n".join(drawn) + "\n"
