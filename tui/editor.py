"""The reader's own editor at a line: which program, and how it wants to be told the line."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from textual.app import App, SuspendNotSupported

from neuron_explorer.errors import UsageError
from neuron_explorer.tui.state import Spot

_COLON = frozenset(["hx", "helix", "subl", "sublime_text", "zed", "zeditor", "atom", "lapce"])
_GOTO = frozenset(["code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"])
_LINE = frozenset(["kate", "kwrite", "pycharm", "charm", "idea"])
_PLUS = """
vi vim nvim view gvim nano pico emacs emacsclient mg jed joe jmacs ne kak micro mcedit gedit geany
less more most
"""


def editor_command(environment: Mapping[str, str], spot: Spot) -> list[str]:
    """What to run: VISUAL, else EDITOR, in its own way to say a line.

    Raises:
        UsageError: no editor is set or installed, or the file is not here.
    """
    said = environment.get("VISUAL") or environment.get("EDITOR") or ""
    where = f"{spot.file}:{spot.line}"
    try:
        command = shlex.split(said)
    except ValueError as error:
        raise UsageError(f"VISUAL or EDITOR {said!r} is no command: {error}") from error
    if not command:
        raise UsageError(f"no editor to open {where} in", hint="export EDITOR=vim, or another one")
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        raise UsageError(f"the editor {command[0]} is not installed", hint="set VISUAL or EDITOR")
    if not Path(spot.file).is_file():
        raise UsageError(f"{spot.file} is not on this machine", hint="y copies its name and line")
    return [*command, *_place(Path(command[0]).name, spot)]


def run_in_terminal(app: App[int], command: Sequence[str]) -> None:
    """Leave the terminal to a program until it ends.

    Raises:
        UsageError: it cannot be run, or ended with another code than 0.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        with app.suspend():
            # ctrl+c is for the program that has the terminal now
            signal.signal(signal.SIGINT, lambda *_: None)
            try:
                problem = _run(command)
            finally:
                signal.signal(signal.SIGINT, before)
    except SuspendNotSupported:
        problem = "this terminal cannot be left to another program"
    if problem:
        raise UsageError(problem)


def _run(command: Sequence[str]) -> str:
    """What went wrong, in one line; nothing raised: the terminal is to be taken back."""
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        return f"{Path(command[0]).name} cannot be run: {error.strerror or error}"
    return f"{Path(command[0]).name} ended with code {code}" if code else ""


def _place(editor: str, spot: Spot) -> list[str]:
    # a path that begins with a dash would be an option
    file = spot.file if not spot.file.startswith("-") else f"./{spot.file}"
    if editor in _COLON:
        return [f"{file}:{spot.line}"]
    if editor in _GOTO:
        return ["--goto", f"{file}:{spot.line}"]
    if editor in _LINE:
        return ["--line", str(spot.line), file]
    return [f"+{spot.line}", file] if editor in _PLUS.split() else [file]
