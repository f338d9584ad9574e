"""`run`: somebody's script, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neuron_explorer.commands.capturing import capture_module
from neuron_explorer.reports import console


def run_target(
    target: Sequence[str],
    *,
    output: Path,
    module: bool,
    steps: tuple[int | None, int],
    quiet: bool,
) -> int:
    """Run a script or module under the profiler; returns its exit code.

    Raises:
        NeuronExplorerError: torch is not installed.
        UsageError: there is no such script.
        OutputError: the trace cannot be written.
    """
    script = capture_module("script")
    request = script.Run(
        target[0], tuple(target[1:]), module=module, output=output, steps=steps[0], wait=steps[1]
    )
    code, paths = script.run(request)
    if not quiet:
        for path in paths:
            console.note(f"wrote {path}; next: neuron-explorer analyze {path}")
    return int(code)
