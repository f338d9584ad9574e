"""The reader's editor: which one, told the line in its own way, or why not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from neuron_explorer.errors import UsageError
from neuron_explorer.tui.editor import editor_command
from neuron_explorer.tui.state import Spot


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A folder of programs that exist."""
    for name in ("vim", "code", "hx", "pycharm", "ed", "nano"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"EDITOR": "vim"}, ["vim", "+7", "FILE"]),
        ({"EDITOR": "nano", "VISUAL": "vim -R"}, ["vim", "-R", "+7", "FILE"]),
        ({"VISUAL": "", "EDITOR": "nano"}, ["nano", "+7", "FILE"]),
        ({"VISUAL": "code --wait"}, ["code", "--wait", "--goto", "FILE:7"]),
        ({"EDITOR": "hx"}, ["hx", "FILE:7"]),
        ({"EDITOR": "pycharm"}, ["pycharm", "--line", "7", "FILE"]),
        ({"EDITOR": "ed"}, ["ed", "FILE"]),
    ],
)
def test_each_editor_is_told_the_line_in_its_way(
    path: str, said: dict[str, str], told: list[str]
) -> None:
    spot = Spot(__file__, 7)
    expected = [word.replace("FILE", __file__) for word in told]
    assert editor_command({"PATH": path, **said}, spot) == expected


@pytest.mark.parametrize(
    ("said", "file", "why"),
    [
        ({}, __file__, "no editor to open"),
        ({"EDITOR": "nothere"}, __file__, "the editor nothere is not installed"),
        ({"EDITOR": "vim 'x"}, __file__, "is no command"),
        ({"EDITOR": "vim"}, "/nowhere/model.py", "/nowhere/model.py is not on this machine"),
    ],
)
def test_what_is_missing_is_said(path: str, said: dict[str, str], file: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        editor_command({"PATH": path, **said}, Spot(file, 7))


def test_a_file_that_looks_like_an_option_is_a_file(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-c.py").write_text("")
    command = editor_command({"PATH": path, "EDITOR": "vim"}, Spot("-c.py", 1))
    assert command == ["vim", "+1", "./-c.py"]


def test_the_path_of_this_python_is_found() -> None:
    """`shutil.which` takes whole paths, as people set them."""
    environment = {"PATH": os.defpath, "EDITOR": sys.executable}
    assert editor_command(environment, Spot(__file__, 1))[0] == sys.executable
