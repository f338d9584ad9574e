"""Puts text on stdout and stderr: width, colour, encoding and closed pipes are settled here.

stdout carries data only. A page is laid out as `rich` text, so that names are never markup,
rendered to a string, and written in what the stream can take.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console, RenderableType
from rich.status import Status

from neuron_explorer.drafts import draft_of
from neuron_explorer.errors import OutputError
from neuron_explorer.reports import formats

ColorSystem = Literal["auto", "standard", "256", "truecolor", "windows"]

DEFAULT_WIDTH = 80
MAX_WIDTH = 110
"""Longer lines are harder to read than a page is long."""


@dataclass(frozen=True)
class Page:
    """What a page is laid out for."""

    width: int = DEFAULT_WIDTH
    color: ColorSystem | None = None


def stdout_page() -> Page:
    """The page that stdout shows: no colour off a terminal, with `NO_COLOR` or a dumb one."""
    console = Console(file=sys.stdout)
    color = None if os.environ.get("NO_COLOR") else console.color_system
    return Page(max(min(console.width, MAX_WIDTH), 20), color)  # type: ignore[arg-type]


def render(parts: Sequence[RenderableType], page: Page) -> str:
    """The parts one under another, wrapped at the page's width, without trailing blanks."""
    console = Console(
        file=io.StringIO(),
        width=page.width,
        color_system=page.color,
        force_terminal=page.color is not None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = (line.rstrip() for line in captured.get().split("\n"))
    return "\n".join(lines)


def write(text: str) -> None:
    """Write to stdout what its encoding can take; nothing a name holds can make it fail."""
    sys.stdout.write(_fit(text, sys.stdout))
    sys.stdout.flush()


def write_data(text: str) -> None:
    """Write JSON or CSV to stdout as UTF-8, the same bytes in every locale."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    buffer.write(text.encode("utf-8", "backslashreplace"))
    buffer.flush()


def write_file(path: Path, text: str) -> None:
    """Write a report to a file, whole or not at all.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        with draft_of(path) as draft:
            draft.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"{path} cannot be written: {reason}", hint="name another file with -o"
        ) from error


def note(text: str) -> None:
    """A remark for the person, on stderr, on one line."""
    line = f"{formats.name(text)}\n"
    with suppress(OSError, ValueError):
        sys.stderr.write(_fit(line, sys.stderr))
        sys.stderr.flush()


def waiting() -> Status:
    """A line on stderr that turns while a job lasts; gone when it is left."""
    return Console(stderr=True).status("", spinner="line")


def complain(message: str, hint: str = "") -> None:
    """An error in one line, and what to do about it in another."""
    note(f"neuron-explorer: {' '.join(message.split())}")
    if hint:
        note(f"hint: {' '.join(hint.split())}")


def close_quietly() -> None:
    """Point stdout at nothing once its reader is gone, so that Python's own flush is silent."""
    with suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


def _fit(text: str, stream: TextIO) -> str:
    if _ascii_only(stream):
        text = formats.plain(text)
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _ascii_only(stream: TextIO) -> bool:
    """Whether our glyphs would come out wrong: an encoding without them, or the C locale."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    if locale in {"C", "POSIX"}:
        return True
    try:
        "█…µ→".encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return True
    return False
