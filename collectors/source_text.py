"""The source lines around every hit, so that a trace can be read on another machine."""

from __future__ import annotations

import hashlib
import linecache
import sys
from pathlib import Path
from typing import Any

from neuron_explorer.collectors.linking.sources import Sources

CONTEXT_LINES = 3


def source_excerpts(sources: Sources) -> dict[str, Any]:
    """`{file: {"sha256": ..., "lines": {"12": "text"}}}` of the files that are here.

    Only Python files are read, and what Python itself remembers of code without a file, such
    as a notebook's cell; and only lines near one that an event points at.
    """
    wanted: dict[str, set[int]] = {}
    for stack in sources.stacks:
        for frame in filter(None, (stack.source, stack.user)):
            wanted.setdefault(frame.file, set()).add(frame.line)
    found = {}
    for file in sorted(wanted):
        data = _content(file)
        if data:
            found[file] = _excerpt(data, wanted[file])
    return found


def _content(file: str) -> bytes:
    if file.startswith("<"):
        return "".join(linecache.getlines(file)).encode("utf-8", "replace")
    path = locate(file)
    return b"" if path is None else path.read_bytes()


def locate(file: str) -> Path | None:
    """The Python file of a frame: absolute, or relative to an entry of `sys.path`."""
    if not file.endswith(".py"):
        return None
    places = [Path(file)] if file.startswith("/") else [Path(p or ".") / file for p in sys.path]
    return next((place for place in places if place.is_file()), None)


def _excerpt(data: bytes, lines: set[int]) -> dict[str, Any]:
    text = data.decode("utf-8", "replace").splitlines()
    near = {
        number
        for line in lines
        for number in range(line - CONTEXT_LINES, line + CONTEXT_LINES + 1)
        if 1 <= number <= len(text)
    }
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "lines": {str(number): text[number - 1] for number in sorted(near)},
    }
