"""`tui`: the trace in the terminal, a screen as a picture, or else a plain report."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_explorer.commands.choices import keep_inputs
from neuron_explorer.errors import ExitCode, UsageError
from neuron_explorer.reports import console

DEFAULT_SIZE = (120, 40)
_SIZE = re.compile(r"(\d{1,3})x(\d{1,3})")


@dataclass(frozen=True)
class Look:
    """What the caller of `tui` chose."""

    files: Sequence[str]
    device: str | None = None
    raw: bool = False
    screenshot: str | None = None
    """Screen to draw into a file instead of showing it."""
    output: Path | None = None
    size: tuple[int, int] = DEFAULT_SIZE
    light: bool = False
    others: Sequence[str] = ()
    """Files of a trace to compare with."""


def screen_size(text: str | None) -> tuple[int, int]:
    """`120x40` as columns and rows.

    Raises:
        UsageError: it is no size, or too small to hold anything.
    """
    if text is None:
        return DEFAULT_SIZE
    found = _SIZE.fullmatch(text)
    if found is None or int(found[1]) < 20 or int(found[2]) < 6:
        raise UsageError(f"--size {text!r} is no size", hint="write it as --size 120x40")
    return int(found[1]), int(found[2])


def show(look: Look) -> int:
    """Run the screens until the reader leaves; the exit code is theirs."""
    if look.screenshot is not None:
        return _draw(look, look.screenshot)
    if not _can_draw():
        return _report(look)
    from neuron_explorer.tui.app import Explorer  # noqa: PLC0415 - Textual only where it is shown
    from neuron_explorer.tui.kept import Kept  # noqa: PLC0415 - as above

    kept = Kept.of_user()
    explorer = Explorer(
        look.files, look.device, raw=look.raw, light=look.light, kept=kept, others=look.others
    )
    code = explorer.run()
    explorer.close()
    if explorer.failure is not None:
        raise explorer.failure
    return int(ExitCode.INTERRUPTED) if code is None else code


def _draw(look: Look, screen: str) -> int:
    if look.output is None:
        raise UsageError("--screenshot needs a file to draw into", hint="name it with -o")
    keep_inputs([*look.files, *look.others], look.output)
    if screen == "compare" and not look.others:
        raise UsageError("nothing to compare with", hint="name the other trace with --compare")
    from neuron_explorer.tui.picture import picture  # noqa: PLC0415 - as above

    svg = picture(
        look.files,
        screen,
        look.size,
        device=look.device,
        raw=look.raw,
        light=look.light,
        others=look.others,
    )
    console.write_file(look.output, svg)
    return int(ExitCode.OK)


def _can_draw() -> bool:
    dumb = os.environ.get("TERM", "dumb") in {"dumb", ""}
    return sys.stdin.isatty() and sys.stdout.isatty() and not dumb


def _report(look: Look) -> int:
    from neuron_explorer.commands.analyze import Request, analyze  # noqa: PLC0415 - seldom needed

    why = "stdout is no terminal" if not sys.stdout.isatty() else "this terminal cannot draw"
    why = why if sys.stdin.isatty() or not sys.stdout.isatty() else "stdin is no terminal"
    console.note(f"{why}: here is the plain report of neuron-explorer analyze")
    return int(analyze(Request(look.files, look.device, look.raw)))
