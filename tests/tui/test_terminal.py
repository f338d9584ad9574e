"""In a real terminal (a pty): it is left as it was found, and gets only what it can show."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

ALT_SCREEN, MAIN_SCREEN, CURSOR_SHOWN = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"
COLOR = re.compile(rb"\x1b\[[0-9;]*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
PATIENCE_S = 90


class Terminal:
    """`neuron-explorer tui` in a pty, and everything it wrote."""

    def __init__(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        usual = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        kept = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "LC_ALL", "LC_CTYPE"}}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "neuron_explorer", "tui", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**kept, **usual, **(env or {})},
            start_new_session=True,
            cwd=cwd,
        )
        self.seen = b""

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def wait_for(self, text: bytes, times: int = 1) -> None:
        until = time.monotonic() + PATIENCE_S
        while self.seen.count(text) < times:
            assert time.monotonic() < until, self.seen[-2_000:]
            self._read(0.2)

    def end(self) -> int:
        """The exit code, once it has left."""
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < until, self.seen[-2_000:]
            self._read(0.1)
        self._read(0.1)
        self.after = termios.tcgetattr(self._slave)
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._slave)
        os.close(self.master)

    def _read(self, seconds: float) -> None:
        while select.select([self.master], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.seen += os.read(self.master, 65_536)
            seconds = 0


@pytest.mark.parametrize(
    ("how", "code"), [("ctrl+c", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_the_terminal_is_left_as_it_was(tiny: Path, how: str | signal.Signals, code: int) -> None:
    terminal = Terminal(str(tiny))
    try:
        terminal.wait_for(b"worst line")
        if isinstance(how, str):
            terminal.type(b"\x03")
        else:
            terminal.process.send_signal(how)
        assert terminal.end() == code
        assert terminal.seen.rindex(MAIN_SCREEN) > terminal.seen.rindex(ALT_SCREEN)
        assert CURSOR_SHOWN in terminal.seen[terminal.seen.rindex(ALT_SCREEN) :]
        assert terminal.after == terminal.before
        assert b"Traceback" not in terminal.seen
    finally:
        terminal.close()


def test_an_editor_gets_the_terminal_and_gives_it_back(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1\n" * 20)
    editor = tmp_path / "vim"
    editor.write_text('#!/bin/sh\nstty -a > modes\necho "$@" > told\nkill -INT $$\n')
    editor.chmod(0o755)
    terminal = Terminal(str(tiny), env={"VISUAL": str(editor)}, cwd=tmp_path)
    try:
        terminal.wait_for(b"opens it")
        terminal.type(b"w")
        terminal.wait_for(b"model.py:12")
        terminal.type(b"e")
        terminal.wait_for(ALT_SCREEN, times=2)
        assert (tmp_path / "told").read_text() == "+12 model.py\n"
        assert " icanon" in (tmp_path / "modes").read_text()
        terminal.wait_for(b"ended with code -2")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert terminal.after == terminal.before
    finally:
        terminal.close()


def test_no_color_and_the_c_locale_get_neither_colors_nor_glyphs(tiny: Path) -> None:
    terminal = Terminal(str(tiny), env={"NO_COLOR": "1", "LANG": "C", "PYTHONUTF8": "1"})
    try:
        terminal.wait_for(b"worst line")
        terminal.type(b"q")
        assert terminal.end() == 0
        assert not COLOR.search(terminal.seen), COLOR.search(terminal.seen)
        assert terminal.seen.isascii()
    finally:
        terminal.close()


def test_a_file_that_is_none_gives_one_line_after_the_screen_is_left(tmp_path: Path) -> None:
    terminal = Terminal(str(tmp_path / "nowhere.parquet"))
    try:
        assert terminal.end() == 1
        said = terminal.seen[terminal.seen.rindex(MAIN_SCREEN) :]
        assert b"neuron-explorer: no trace at" in said
        assert b"Traceback" not in terminal.seen
    finally:
        terminal.close()


def test_a_dumb_terminal_gets_the_report(tiny: Path) -> None:
    terminal = Terminal(str(tiny), env={"TERM": "dumb"})
    try:
        assert terminal.end() == 0
        assert b"this terminal cannot draw: here is the plain report" in terminal.seen
        assert ALT_SCREEN not in terminal.seen
    finally:
        terminal.close()
