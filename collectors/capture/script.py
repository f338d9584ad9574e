"""Somebody's script or module, run unchanged under `profile()`."""

from __future__ import annotations

import runpy
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import schedule

from neuron_explorer.collectors.capture.session import profile
from neuron_explorer.errors import ExitCode, UsageError

_OURS = {__file__, runpy.run_module.__code__.co_filename}


@dataclass(frozen=True)
class Run:
    """What to run, and which part of it to record."""

    target: str
    """Path of a script, or name of a module."""
    args: tuple[str, ...] = ()
    module: bool = False
    output: Path = Path("trace.parquet")
    steps: int | None = None
    """Optimizer steps to record; None = everything."""
    wait: int = 0
    """Optimizer steps to leave out before that, besides one that warms up."""
    mine: tuple[str, ...] = ()
    """Paths or packages that are the user's own code; as in `profile()`."""
    plumbing: tuple[str, ...] = ()
    """Those that are nobody's; as in `profile()`."""
    dry_run: str | None = None
    """Chip to give the script as a `neuron` device that is not there."""
    execute: bool = True
    """Whether the dry run computes values."""


def run(request: Run) -> tuple[int, list[Path]]:
    """Run it as `python script.py args...` would; returns its exit code and the traces.

    A step ends where an optimizer's `step()` does. Where the script ends well and the trace is
    missing, or ends before the steps that were asked for, the exit code is `UNTRUSTED` (3).

    Raises:
        UsageError: The script does not exist.
        DeviceError: There is no such dry run, or it cannot be here.
        OutputError: The output cannot be written; nothing has run then.
    """
    if not request.module and not Path(request.target).is_file():
        raise UsageError(f"{request.target} is no script", hint="name a file, or -m MODULE")
    if request.dry_run is not None:
        # torch has to know of the device before the script asks for one
        from neuron_explorer.collectors.dryrun import dryrun

        dryrun(request.dry_run, execute=request.execute)
    with ExitStack() as stack:
        session = stack.enter_context(
            profile(
                output=request.output,
                mine=request.mine,
                plumbing=request.plumbing,
                **_schedule(request),
            )
        )
        session.opened_at = "`neuron-explorer run`"
        hook = register_optimizer_step_post_hook(lambda *_: session.step())
        stack.callback(hook.remove)
        code = _execute(request)
    if code == ExitCode.OK and not session.complete:
        code = int(ExitCode.UNTRUSTED)
    return code, session.paths


def _schedule(request: Run) -> dict[str, Any]:
    if request.steps is None:
        return {}
    plan = schedule(wait=request.wait, warmup=1, active=request.steps, repeat=1)
    return {"schedule": plan}


def _execute(request: Run) -> int:
    """Run with the arguments and the path the target expects; its own errors are its own."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [request.target, *request.args]
    begin = Path.cwd() if request.module else Path(request.target).resolve().parent
    sys.path[0:0] = [str(begin)]
    try:
        if request.module:
            runpy.run_module(request.target, run_name="__main__", alter_sys=True)
        else:
            _run_file(Path(request.target).absolute())
    except SystemExit as stop:
        return _exit_code(stop.code)
    except Exception as error:  # noqa: BLE001 - the script's, shown as Python would show it
        sys.excepthook(type(error), error, _without_ours(error.__traceback__))
        return 1
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0


def _run_file(path: Path) -> None:
    """As Python: `runpy.run_path` would change `sys.argv[0]`, and have no loader."""
    loader = SourceFileLoader("__main__", str(path))
    main, before = ModuleType("__main__"), sys.modules["__main__"]
    main.__file__, main.__loader__, main.__package__ = str(path), loader, None
    sys.modules["__main__"] = main
    try:
        exec(loader.source_to_code(path.read_bytes(), str(path)), vars(main))
    finally:
        sys.modules["__main__"] = before


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Where the script begins."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _OURS:
        trace = trace.tb_next
    return trace


def _exit_code(code: object) -> int:
    """As Python: nothing is success, a number is itself, anything else is printed and 1."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    sys.stderr.write(f"{code}\n")
    return 1
