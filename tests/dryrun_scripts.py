"""Runs the scripts of `tests/collectors/dryrun` in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
SCRIPTS = TESTS / "collectors" / "dryrun" / "scripts"
Run = Callable[..., Any]
# small models: threads that wait for each other would cost more than they help
_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}


def started(path: Path, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """A script that runs."""
    return subprocess.Popen(
        [sys.executable, str(path), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **_ENVIRONMENT, **environment},
    )


def printed(running: subprocess.Popen[str]) -> Any:
    """What it printed last, as JSON."""
    with running:
        out, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors[-4000:]
    return json.loads(out.splitlines()[-1])


def run_script(name: str | Path, *arguments: object, **environment: str) -> Any:
    """What a script of `scripts/`, or at a path, printed last, as JSON."""
    path = SCRIPTS / name if isinstance(name, str) else name
    return printed(started(path, *arguments, **environment))
