"""The device that replays: which one, how much memory it has, whether it is the trace's."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from neuron_explorer.errors import UsageError
from neuron_explorer.trace import Trace

MEMORY_PART = 0.5
"""Replays may take this part of the free memory."""

_DEVICE = """
SELECT any_value(device) AS device
FROM work
WHERE
    rank = $rank
    AND (
        event_id IN (SELECT unnest($ids::BIGINT[])) OR op_id IN (SELECT unnest($ids::BIGINT[]))
    )
"""


def choose_device(name: str | None) -> torch.device:
    """The device asked for, else the accelerator of this machine, else its CPU.

    Raises:
        UsageError: There is no such device here.
    """
    if name is None:
        found = torch.accelerator.current_accelerator(check_available=True)
        return torch.device("cpu") if found is None else found
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        raise UsageError(
            f"no device {name} on this machine: {str(error).partition(chr(10))[0]}",
            hint="leave --device out, or name one that torch can use here: cpu, cuda:0",
        ) from error
    return device


@contextmanager
def threads_of_torch(count: int | None) -> Iterator[None]:
    """So many threads for torch's CPU ops inside; as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_title(device: torch.device) -> str:
    """`cuda (NVIDIA H100)`; of a CPU the threads that torch uses."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    count = torch.get_num_threads()
    threads = f"{count} thread{'' if count == 1 else 's'}"
    return f"{device}, {threads}" if device.type == "cpu" else str(device)


def free_bytes(device: torch.device) -> int | None:
    """Free memory of the device; None where nothing tells."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text("ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    if "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return None


def busy_machine() -> str | None:
    """That more wants to run than there are CPUs, which widens every spread; None if not so."""
    cpus = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load <= cpus + 1:
        return None
    return f"the machine was busy: a load of {load:.1f} on {cpus} CPUs"


def recorded_device(trace: Trace, rank: int, event_ids: Sequence[int]) -> str | None:
    """Device of a finding's work in the trace, as it is called there."""
    found = trace.sql(_DEVICE, {"rank": rank, "ids": list(event_ids)})
    device: str | None = found.column("device")[0].as_py()
    return device


def is_other(trace: Trace, recorded: str | None, device: torch.device) -> bool | None:
    """Whether the trace was recorded on another device than this; None where it does not say."""
    if recorded is None:
        return None
    if recorded.partition(":")[0] != device.type:
        return True
    told = list(trace.metadata.values())
    if device.type == "cpu":
        hosts = {(file.get("environment") or {}).get("hostname") for file in told} - {None}
        return platform.node() not in hosts if hosts else None
    names = {entry.get("name") for file in told for entry in file.get("devices") or [] if entry} - {
        None
    }
    if device.type != "cuda" or not names:
        return None
    return torch.cuda.get_device_name(device) not in names
