"""`demo`: profile a small training step, import it, judge it."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from neuron_explorer.collectors.capture.calibrate import calibrate
from neuron_explorer.collectors.importers import ImportOptions, import_file
from neuron_explorer.commands.analyze import Request, analyze
from neuron_explorer.commands.choices import Format
from neuron_explorer.devices import cpu_chip
from neuron_explorer.errors import ExitCode, NeuronExplorerError, TraceError, UsageError
from neuron_explorer.progress import progress_bar
from neuron_explorer.reports import console
from neuron_explorer.trace_files import read_trace_files

CALIBRATION_S = 4.0
"""Enough for a demo; `neuron-explorer calibrate` takes its time."""

_NAME = "demo.json"

_QUIET_TORCH = {"TORCH_CPP_LOG_LEVEL": "ERROR", "KINETO_LOG_LEVEL": "6"}
"""torch reports to stderr that its profiler begins and ends."""


def show_demo(output: Path, form: Format, *, quiet: bool) -> ExitCode:
    """Record, import and judge; every step is announced on stderr.

    Raises:
        NeuronExplorerError: torch is not installed.
        UsageError: the output is somebody's file, not the trace of an earlier demo.
        OutputError: the trace cannot be written.
    """
    _keep_other_files(output)
    recorder = _recorder()
    _say("profiling a small training step", quiet=quiet)
    with TemporaryDirectory(prefix="neuron-explorer-") as folder:
        chrome_trace = Path(folder) / _NAME
        device = recorder.record(chrome_trace)
        with progress_bar(quiet=quiet) as progress:
            here = ImportOptions(captured_here=True)
            import_file(chrome_trace, output, progress=progress, options=here)
    if device == "cpu":
        _measure_roof(quiet=quiet)
    _say(f"wrote {output}", quiet=quiet)
    return analyze(Request([str(output)], form=form, quiet=quiet))


def _recorder() -> ModuleType:
    for name, value in _QUIET_TORCH.items():
        os.environ.setdefault(name, value)
    try:
        from neuron_explorer.collectors.capture import demo  # noqa: PLC0415  needs torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise NeuronExplorerError(
            "the demo profiles with torch, which is not installed",
            hint="pip install 'neuron-explorer[torch]'",
        ) from error
    return demo


def _keep_other_files(output: Path) -> None:
    if output.exists() and not _is_demo(output):
        raise UsageError(f"{output} is no trace of a demo", hint="name another file with -o")


def _is_demo(path: Path) -> bool:
    try:
        (file,) = read_trace_files([path])
    except TraceError:
        return False
    return (file.metadata.get("origin") or {}).get("file") == _NAME


def _measure_roof(*, quiet: bool) -> None:
    """A CPU has no data sheet: without a measured roof nothing could be called memory bound."""
    if cpu_chip() is None:
        _say("measuring what this CPU can do, once", quiet=quiet)
        calibrate(seconds=CALIBRATION_S)


def _say(text: str, *, quiet: bool) -> None:
    if not quiet:
        console.note(text)
