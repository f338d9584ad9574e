"""What the dry-run device is: numbers and lists read from TOML, each with its public source."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import Any

from neuron_explorer.devices import load_chip
from neuron_explorer.errors import DeviceError

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Constants:
    """One logical core and its runtime."""

    name: str
    title: str
    cores: int
    """Logical cores of a chip."""
    queues: Mapping[str, int]
    """Number of hardware queues by kind: compute, collective, copy."""
    launch_ns: int
    """Device time that each program costs besides its work."""
    submit_ns: int
    """Host time that each submission costs."""
    bytes_per_ns: float
    """HBM bandwidth that programs achieve."""
    flops_per_ns: Mapping[str, float]
    """Matrix throughput that programs achieve, by dtype."""
    vector_flops_per_ns: float
    link_bytes_per_ns: float
    """Bandwidth between host and device."""
    link_latency_ns: int
    collective_bytes_per_ns: float
    """Bandwidth between chips that one logical core has, in one direction."""
    collective_hop_ns: int
    """Latency from one rank of a ring to the next."""
    on_chip_bytes: int
    adaptive_ops: int
    """Adaptive eager makes at most so many ops one program."""
    narrowed: Mapping[str, str]
    """dtype -> the dtype in which the device computes it."""
    sources: Mapping[str, str]
    """Where each group of numbers is from."""


@dataclass(frozen=True)
class Support:
    """Which ops are programs of the device, which fall back, which only allocate."""

    fallback: re.Pattern[str]
    allocation: frozenset[str]

    def falls_back(self, base_name: str) -> bool:
        """Whether an ATen op (`addmm`, without namespace and overload) runs on the CPU."""
        return self.fallback.match(base_name) is not None


def load_constants(chip: str, path: Path | None = None) -> Constants:
    """Constants of a chip that the dry run knows, or of a file.

    Raises:
        DeviceError: There is no such file, or something is missing in it.
    """
    path = path or _HERE / f"{chip}.toml"
    known = sorted(file.stem for file in _HERE.glob("*.toml") if file.stem != "support")
    if not path.is_file():
        raise DeviceError(f"no dry run of {chip!r} is known", hint=f"one of {', '.join(known)}")
    try:
        return _constants(chip, _read(path))
    except KeyError as error:
        raise DeviceError(f"{path}: {error.args[0]!r} is missing") from error


def load_support(path: Path | None = None) -> Support:
    """The support list, the shipped one or that of a file.

    Raises:
        DeviceError: The file cannot be read or has no list.
    """
    path = path or _HERE / "support.toml"
    table = _read(path)
    try:
        pattern = "|".join(translate(name) for name in table["fallback"]) or r"\A\Z"
        return Support(re.compile(pattern), frozenset(table["allocation"]))
    except KeyError as error:
        raise DeviceError(f"{path}: the list {error.args[0]!r} is missing") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise DeviceError(f"cannot read {path}: {error}") from error


def _constants(name: str, table: dict[str, Any]) -> Constants:
    chip = load_chip(table["chip"])
    narrowed = {key: value for key, value in table["types"].items() if key != "source"}
    share = table["peak"]["share"]
    cast = {
        dtype: chip.peak_flops[as_] for dtype, as_ in table["matmult"].items() if dtype != "source"
    }
    return Constants(
        name=name,
        title=table["title"],
        cores=table["device"]["logical_cores"],
        queues={kind: table["queues"][kind] for kind in ("compute", "collective", "copy")},
        launch_ns=round(table["launch"]["us"] * 1000),
        submit_ns=round(table["submit"]["us"] * 1000),
        bytes_per_ns=chip.bandwidth_bytes_per_s / 1e9 * table["bandwidth"]["share"],
        flops_per_ns={
            dtype: peak / 1e9 * share for dtype, peak in {**chip.peak_flops, **cast}.items()
        },
        vector_flops_per_ns=table["vector"]["tflops"] * 1000,
        link_bytes_per_ns=table["host_link"]["gb_per_s"],
        link_latency_ns=round(table["host_link"]["latency_us"] * 1000),
        collective_bytes_per_ns=table["collective"]["gb_per_s"],
        collective_hop_ns=round(table["collective"]["hop_us"] * 1000),
        on_chip_bytes=table["memory"]["on_chip_mib"] << 20,
        adaptive_ops=table["adaptive"]["ops"],
        narrowed=narrowed,
        sources={key: value["source"] for key, value in table.items() if isinstance(value, dict)},
    )
