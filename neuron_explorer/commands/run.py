"""`run`: somebody's script, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neuron_explorer.commands import signals
from neuron_explorer.commands.capturing import capture_module
from neuron_explorer.errors import UsageError
from neuron_explorer.reports import console


def run_target(  # noqa: PLR0913  one argument an option
    target: Sequence[str],
    *,
    output: Path,
    module: bool,
    steps: tuple[int | None, int],
    owners: tuple[Sequence[str], Sequence[str]],
    dry_run: tuple[str | None, bool],
    quiet: bool,
) -> int:
    """Run a script or module under the profiler; returns its exit code.

    Raises:
        NeuronExplorerError: torch is not installed.
        UsageError: there is no such script, or shapes only are asked for without a dry run.
        DeviceError: the dry run does not know the chip, or cannot be where a device is.
        OutputError: the trace cannot be written.
    """
    chip, execute = dry_run
    if chip is None and not execute:
        raise UsageError("--no-execute belongs to a dry run", hint="add --dryrun trn2")
    script = capture_module("script")
    request = script.Run(
        target[0],
        tuple(target[1:]),
        module=module,
        output=output,
        steps=steps[0],
        wait=steps[1],
        mine=tuple(owners[0]),
        plumbing=tuple(owners[1]),
        dry_run=chip,
        execute=execute,
    )
    signals.give_back()  # the script may decide about them, and the recording does
    code, paths = script.run(request)
    if not quiet:
        for path in paths:
            console.note(f"wrote {path}; next: neuron-explorer analyze {path}")
    return int(code)
