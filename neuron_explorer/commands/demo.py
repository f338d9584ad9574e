"""`demo`: profile a small training step, import it, judge it."""

from __future__ import annotations

from pathlib import Path

from neuron_explorer.collectors.capture.calibrate import calibrate
from neuron_explorer.commands.analyze import Request, analyze
from neuron_explorer.commands.capturing import capture_module
from neuron_explorer.commands.choices import FindingsFormat, Format
from neuron_explorer.devices import cpu_chip
from neuron_explorer.errors import ExitCode, TraceError, UsageError
from neuron_explorer.reports import console
from neuron_explorer.trace_files import read_trace_files

CALIBRATION_S = 4.0
"""Enough for a demo; `neuron-explorer calibrate` takes its time."""

_FUNCTION = "hand_written_gelu"
"""A function that only the demo's own trace mentions."""


def show_demo(output: Path, form: Format, *, quiet: bool) -> ExitCode:
    """Record and judge; every step is announced on stderr.

    Raises:
        NeuronExplorerError: torch is not installed.
        UsageError: the output is somebody's file, not the trace of an earlier demo.
        OutputError: the trace cannot be written.
    """
    _keep_other_files(output)
    demo = capture_module("demo")
    _say("profiling a small training step", quiet=quiet)
    device = demo.record(output)
    if device == "cpu":
        _measure_roof(quiet=quiet)
    _say(f"wrote {output}", quiet=quiet)
    return analyze(Request([str(output)], form=FindingsFormat(form), quiet=quiet))


def _keep_other_files(output: Path) -> None:
    if output.exists() and not _is_demo(output):
        raise UsageError(f"{output} is no trace of a demo", hint="name another file with -o")


def _is_demo(path: Path) -> bool:
    try:
        (file,) = read_trace_files([path])
    except TraceError:
        return False
    sources = file.metadata.get("sources") or {}
    lines = [line for source in sources.values() for line in source["lines"].values()]
    return any(_FUNCTION in line for line in lines)


def _measure_roof(*, quiet: bool) -> None:
    """A CPU has no data sheet: without a measured roof nothing could be called memory bound."""
    if cpu_chip() is None:
        _say("measuring what this CPU can do, once", quiet=quiet)
        calibrate(seconds=CALIBRATION_S)


def _say(text: str, *, quiet: bool) -> None:
    if not quiet:
        console.note(text)
