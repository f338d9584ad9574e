"""Runs scripts of dry runs in processes of their own, forked from one that has torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
SCRIPTS = TESTS / "collectors" / "dryrun" / "scripts"
Run = Callable[..., Any]
# small models: threads that wait for each other would cost more than they help
_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
_PATIENCE_S = 300


@dataclass(frozen=True)
class Ended:
    """What is left of a process."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Running:
    """A process that was started."""

    number: int
    files: tuple[Path, Path]
    """Of its output and its errors."""

    def ended(self) -> Ended:
        """Wait for its end."""
        code = _ask({"wait": self.number, "timeout_s": _PATIENCE_S})
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in self.files]
        for path in self.files:
            path.unlink()
        return Ended(code, *texts)


def started(
    name: str | Path,
    *arguments: object,
    folder: Path | None = None,
    is_module: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Running:
    """A script, or a module, that runs; what it finds in the environment besides all else."""
    files = tuple(Path(tempfile.mkstemp(prefix="dryrun")[1]) for _ in range(2))
    number = _ask(
        {
            "argv": [str(name), *map(str, arguments)],
            "is_module": is_module,
            "cwd": str(folder or Path.cwd()),
            "env": dict(environment or {}),
            "out": str(files[0]),
            "err": str(files[1]),
        }
    )
    return Running(number, (files[0], files[1]))


def printed(running: Running) -> Any:
    """What it printed last, as JSON."""
    done = running.ended()
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def run_script(name: str | Path, *arguments: object) -> Any:
    """What a script of `scripts/`, or at a path, printed last, as JSON."""
    path = SCRIPTS / name if isinstance(name, str) else name
    return printed(started(path, *arguments))


def run_code(code: str, folder: Path) -> Ended:
    """Run lines of Python in a folder."""
    path = folder / "code.py"
    path.write_text(code, encoding="utf-8")
    return started(path, folder=folder).ended()


def run_cli(*arguments: str, folder: Path) -> Ended:
    """Run the command line in a folder."""
    return started("neuron_explorer", *arguments, folder=folder, is_module=True).ended()


@cache
def _nursery() -> subprocess.Popen[str]:
    """The process that all others are forked from; it ends when this one does."""
    return subprocess.Popen(
        [sys.executable, str(TESTS / "dryrun_nursery.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **_ENVIRONMENT},
    )


def _ask(request: dict[str, Any]) -> int:
    nursery = _nursery()
    assert nursery.stdin
    assert nursery.stdout
    nursery.stdin.write(json.dumps(request) + "\n")
    nursery.stdin.flush()
    return int(nursery.stdout.readline())
