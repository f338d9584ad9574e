"""A `neuron` device without the hardware: `neuron_explorer.dryrun("trn2")`."""

from __future__ import annotations

import atexit
from pathlib import Path

from neuron_explorer.collectors.dryrun.constants import load_constants, load_support
from neuron_explorer.collectors.dryrun.device import Device
from neuron_explorer.collectors.dryrun.registration import check_free, register
from neuron_explorer.collectors.dryrun.source import DryRunSource
from neuron_explorer.collectors.queue_sources import register_queue_source
from neuron_explorer.errors import DeviceError

__all__ = ["Device", "dryrun"]

_running: list[Device] = []
_PATIENCE_S = 5.0


def dryrun(
    chip: str = "trn2",
    *,
    execute: bool = True,
    adaptive: bool = False,
    constants: str | Path | None = None,
    support: str | Path | None = None,
) -> Device:
    """Give this process a `neuron` device that runs on the CPU and is modelled as a chip.

    Args:
        chip: Name of a chip that the dry run knows: `trn2`.
        execute: Compute values. Without, only shapes are followed, so that a model of
            billions of parameters can be tried on a laptop.
        adaptive: Make neighbouring eager ops one program until something waits for them.
        constants: A TOML file in place of the chip's own.
        support: A TOML file in place of the list of supported ops.

    Called again, it gives a new device with a log of its own; the one before ends its work, and
    what lies on it stays usable.

    Returns:
        The device, with its own log.

    Raises:
        DeviceError: No such chip, a real Neuron device or CUDA is there, or a file is wrong.
    """
    check_free()
    device = Device(
        load_constants(chip, None if constants is None else Path(constants)),
        load_support(None if support is None else Path(support)),
        execute=execute,
        adaptive=adaptive,
    )
    if _running:
        _running[0].close()
    else:
        register(_current)
        atexit.register(_end)
    _running[:] = [device]
    register_queue_source(DryRunSource(device))
    return device


def _end() -> None:
    """End the threads before the interpreter goes: C++ aborts where it finds one at work.

    A collective whose other process is gone never ends, so the wait has one.
    """
    _running[0].close(_PATIENCE_S)


def _current() -> Device:
    if not _running:
        raise DeviceError("no dry run is going on", hint="call neuron_explorer.dryrun() first")
    return _running[0]
