"""Runs scripts in children that are forked from a process with everything imported.

A dry run's device is registered for the life of a process, so each script needs its own; importing
torch again for each would take most of the tests' time. One JSON request a line comes in, one
answer a line goes out (see `dryrun_scripts`). Each child ends as every interpreter does.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORTED = (
    "torch",
    "torch._dynamo",
    "torch._functorch.aot_autograd",
    "torch.distributed",
    "torch.profiler",
    "torch.utils.data",
    "transformers.models.llama.modeling_llama",
    "neuron_explorer.cli",
    "neuron_explorer.analyzers",
    "neuron_explorer.collectors.capture.session",
    "neuron_explorer.collectors.dryrun",
)
Request = dict[str, Any]


def _import_all() -> None:
    for name in _IMPORTED:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != "transformers":
                raise


def _start(request: Request) -> int:
    """Fork; returns the child's id, and 0 in the child itself."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    for name, number in (("/dev/null", 0), (request["out"], 1), (request["err"], 2)):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
        os.dup2(os.open(name, flags), number)
    os.chdir(request["cwd"])
    os.environ.update(request["env"])
    sys.argv[:] = request["argv"]
    return 0


def _run(request: Request) -> None:
    name = request["argv"][0]
    if request["is_module"]:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(name).resolve().parent)
        runpy.run_path(name, run_name="__main__")


def _code_of(child: int, timeout_s: float) -> int:
    """How a child ended; it is ended where it takes longer."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Serve requests until there are no more."""
    _import_all()
    for line in sys.stdin:
        request: Request = json.loads(line)
        if "wait" in request:
            answer = _code_of(request["wait"], request["timeout_s"])
        elif (answer := _start(request)) == 0:
            return _run(request)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    return None


main()
