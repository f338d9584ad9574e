"""The text of source files: as the trace kept it, or from the very same file on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
from pygments.token import (  # type: ignore[import-untyped]
    Comment,
    Keyword,
    Name,
    Number,
    String,
)

from neuron_explorer.disk_sources import source_bytes
from neuron_explorer.tui.text import Line, Piece, code

_ROLES: Sequence[tuple[Any, str]] = (
    (Comment, "comment"),
    (Keyword, "keyword"),
    (Name.Builtin.Pseudo, "keyword"),
    (Name.Function, "function"),
    (Name.Class, "function"),
    (Name.Decorator, "function"),
    (String, "string"),
    (Number, "number"),
)


@dataclass(frozen=True)
class SourceText:
    """What is known of a file's text."""

    lines: Mapping[int, Line] = field(default_factory=dict)
    """Coloured, by line number from 1; lines that nobody has are missing."""
    warning: str = ""
    """Why it is not simply the whole file, and what to do."""


def source_text(metadata: Iterable[Mapping[str, Any]], file: str) -> SourceText:
    """The file as it was when the trace was captured, as far as it can be had.

    The whole file counts only while its SHA-256 is the recorded one; else the lines that the
    trace kept are shown, and where it kept none, the file on disk with a warning.

    Args:
        metadata: Of each file of the trace, as `Trace.metadata` gives it.
        file: Path as the events have it.
    """
    kept, digest = _kept(metadata, file)
    content = source_bytes(file)
    if content is not None and digest == hashlib.sha256(content).hexdigest():
        return SourceText(_colored(_numbered(content)))
    if kept:
        changed = "changed since the trace" if content is not None else "is not on this machine"
        return SourceText(_colored(kept), f"{file} {changed}: these are the lines the trace kept")
    if content is not None:
        said = f"the trace kept no text of {file}: this is the file as it is now"
        return SourceText(_colored(_numbered(content)), said)
    said = f"the text of {file} is neither in the trace nor here"
    return SourceText({}, f"{said}: run this where the file is")


def _kept(metadata: Iterable[Mapping[str, Any]], file: str) -> tuple[dict[int, str], str | None]:
    kept: dict[int, str] = {}
    digest: str | None = None
    for facts in metadata:
        recorded = (facts.get("sources") or {}).get(file)
        if recorded is not None:
            digest = recorded.get("sha256")
            kept |= {int(number): text for number, text in recorded.get("lines", {}).items()}
    return kept, digest


def _numbered(content: bytes) -> dict[int, str]:
    lines = content.decode("utf-8", errors="replace").splitlines()
    return dict(enumerate(lines, 1))


def _colored(lines: Mapping[int, str]) -> dict[int, Line]:
    """Each stretch of lines without a hole is coloured as one text."""
    colored: dict[int, Line] = {}
    for stretch in _stretches(sorted(lines)):
        text = "\n".join(code(lines[number]) for number in stretch)
        colored |= zip(stretch, _tokens(text), strict=False)
    return colored


def _stretches(numbers: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][-1] == number - 1:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _tokens(text: str) -> list[Line]:
    lines: list[list[Piece]] = [[]]
    for kind, said in PythonLexer(stripnl=False).get_tokens(text):
        role = next((role for token, role in _ROLES if kind in token), "")
        first, *more = said.split("\n")
        lines[-1].append((first, role))
        lines.extend([(part, role)] for part in more)
    return list(lines)
