"""This machine's CPU as a chip: measured by `neuron-explorer calibrate`, kept in the cache.

A roof belongs to a host, a CPU model and the cores this process may use: another of any of them
has another file.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

from neuron_explorer.devices.chip import Chip, parse_chip
from neuron_explorer.errors import DeviceError

CPU = "cpu"
"""Name of the measured chip."""


def cpu_chip(path: Path | None = None) -> Chip | None:
    """This CPU's measured roof, or None where it was never measured.

    Args:
        path: File to read instead of this machine's.

    Raises:
        DeviceError: the file is there and wrong.
    """
    path = path or roof_path()
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise DeviceError(f"cannot read the measured roof {path}: {error}") from error
    return parse_chip(text, CPU, str(path))


def roof_path() -> Path:
    """Where this machine's roof is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    host = re.sub(r"[^A-Za-z0-9.-]+", "-", platform.node()) or "host"
    kind = hashlib.sha256(f"{cpu_model()}|{usable_cores()}".encode()).hexdigest()[:10]
    return cache / "neuron_explorer" / "roofs" / f"cpu-{host}-{kind}.toml"


def cpu_model() -> str:
    """Name of the CPU as the system gives it."""
    try:
        told = Path("/proc/cpuinfo").read_text("utf-8", errors="replace")
    except OSError:
        told = ""
    found = re.search(r"^model name\s*:\s*(.+?)\s*$", told, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
