"""Whole programs in processes of their own, for what ends or splits a process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dryrun_scripts import started

HEAD = """
import os, signal, sys, threading, time, warnings
import torch
from neuron_explorer import profile
"""
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR", "KINETO_LOG_LEVEL": "6"}


@dataclass(frozen=True)
class Job:
    """How a program ended."""

    code: int
    out: str
    said: str
    """Its stderr."""


def run_job(program: str, folder: Path, timeout_s: float = 240, *, anew: bool = False) -> Job:
    """Run a program to its end in `folder`.

    Args:
        program: What follows `HEAD`.
        folder: Where it runs; `job.py` is written there.
        timeout_s: When it is killed if it runs anew; else `dryrun_scripts` says.
        anew: Whether it needs a process of its own from the start; else torch is imported
            already, which takes most of a short program's time.
    """
    file = folder / "job.py"
    file.write_text(HEAD + program, encoding="utf-8")
    if anew:
        return run_program(folder, str(file), timeout_s=timeout_s)
    ended = started(file, folder=folder, environment=QUIET).ended()
    return Job(ended.returncode, ended.stdout, ended.stderr)


def run_program(folder: Path, *arguments: str, timeout_s: float = 240) -> Job:
    """Run Python with these arguments in `folder`."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=timeout_s,
        env=os.environ | QUIET,
    )
    return Job(done.returncode, done.stdout, done.stderr)


def files(folder: Path) -> list[str]:
    """What the program left behind, besides itself."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name != "job.py" and "__pycache__" not in path.parts
    )
