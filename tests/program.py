"""The program as its own process, on a terminal or not, and a trace with hostile names."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from builders import kernel, launch, op, step, write_trace

TINY = Path(__file__).parent / "data" / "tiny.kineto.json"
HOSTILE = "[bold]x[/red] \x1b[31m\t中文"
PROGRAM = (sys.executable, "-m", "neuron_explorer")


def program(
    *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run it with nothing of it on a terminal."""
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, env=os.environ | dict(env or {}), cwd=cwd, check=False
    )


def on_a_terminal(arguments: list[str], env: dict[str, str]) -> bytes:
    """What the program writes when stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    plain = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "NO_COLOR": ""}
    command = [*PROGRAM, *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=os.environ | plain | env):
        os.close(theirs)
        written = b""
        # Linux ends a terminal whose other side is closed with an error instead of no bytes
        with suppress(OSError):
            while chunk := os.read(ours, 65536):
                written += chunk
    os.close(ours)
    return written


def hostile_trace(path: Path) -> Path:
    """A trace of three steps whose device waits for its host, with names that look like markup."""
    rows = []
    for number in range(3):
        begin = number * 10_000_000
        rows.append(step(number, begin, 9_000_000))
        for start in range(begin, begin + 8_000_000, 1_000_000):
            here: dict[str, object] = {"name": HOSTILE, "step": number}
            here |= {"source_file": f"/src/{HOSTILE}.py", "source_line": 7}
            op_id = len(rows)
            rows.append(op(start, 90_000, **here))
            rows.append(launch(start + 10_000, 20_000, op_id=op_id, step=number))
            rows.append(kernel(start + 40_000, 50_000, op_id=op_id, launch_id=op_id + 1, **here))
    return write_trace(path, rows)
