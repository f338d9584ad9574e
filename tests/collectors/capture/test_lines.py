"""The line collector under each Python that is here; torch is not needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("line_checks.py")
ROOT = Path(__file__).parents[3]
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"


def interpreter(version: str) -> str:
    """A Python of this version that starts; skips where there is none."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    on_path = shutil.which(f"python{version}")
    candidates = [Path(on_path)] if on_path else []
    candidates += sorted(PYENV.glob(f"{version}.*/bin/python"))
    for candidate in candidates:
        asked = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return str(candidate)
    pytest.skip(f"no Python {version} on this machine")


def run(version: str, *arguments: str) -> str:
    done = subprocess.run(
        [interpreter(version), CHECKS, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_line_events(version: str) -> None:
    assert run(version) == "11 checks, events"


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_trace_function(version: str) -> None:
    assert run(version, "trace") == "11 checks, trace"
