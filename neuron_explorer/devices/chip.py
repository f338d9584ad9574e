"""What a chip file says, and the strict reader of it.

A chip file names the device as PyTorch sees it (a card, one die of a card, a logical core):

    title = "NVIDIA H100 SXM5 80 GB"
    vendor = "NVIDIA"
    unit = "GPU"                    # what one PyTorch device is

    [[match]]                       # any number; how a trace's device properties tell this chip
    name = 'NVIDIA H100 80GB HBM3'  # regular expression for the whole reported name
    memory_gib = [70, 90]           # optional: reported memory lies between
    multiprocessors = 132           # optional: reported SMs or CUs
    warp_size = 32                  # optional

    [memory]
    gib = 80
    source = "where the number comes from"

    [bandwidth]
    gb_per_s = 3350                 # 1e9 bytes a second
    source = "..."

    [peak.bf16]                     # dense, 1e12 operations a second; one table a dtype
    tflops = 989
    source = "..."

    [achievable_matmul]             # optional: best measured matmul over the peak
    share = 0.8
    source = "..."

    [roof]                          # optional: from which share of a roof on a unit is at it
    share = 0.75
    source = "..."
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec

from neuron_explorer.errors import DeviceError

DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
"""Keys of `peak_flops`. `tf32` counts only where PyTorch was allowed to use it for fp32."""

ROOF_SHARE = 0.75
"""Achieved over peak from which on a unit counts as at the roof; no chip reaches 1."""

_GIB = 2**30


@dataclass(frozen=True)
class Match:
    """How reported device properties tell a chip; what is None is not looked at."""

    name: re.Pattern[str]
    memory_gib: tuple[float, float] | None = None
    multiprocessors: int | None = None
    warp_size: int | None = None

    def fits(self, properties: Mapping[str, object]) -> bool:
        """Whether Kineto's device properties are of this kind; a missing one does not fit."""
        name, memory = properties.get("name"), properties.get("totalGlobalMem")
        if not isinstance(name, str) or not self.name.fullmatch(name.strip()):
            return False
        for wanted, key in ((self.multiprocessors, "numSms"), (self.warp_size, "warpSize")):
            if wanted is not None and properties.get(key) != wanted:
                return False
        if self.memory_gib is None:
            return True
        low, high = self.memory_gib
        return isinstance(memory, int) and low * _GIB <= memory <= high * _GIB


@dataclass(frozen=True)
class Chip:
    """One device as PyTorch sees it. Rates are dense peaks; what is not in the file is unknown."""

    name: str
    title: str
    vendor: str
    unit: str
    """What one device is: GPU, GCD, chip, logical core, host."""
    memory_bytes: int
    bandwidth_bytes_per_s: float
    peak_flops: Mapping[str, float]
    """Operations a second by dtype (see `DTYPES`), a multiply-add counted as two."""
    sources: Mapping[str, str]
    """Where each number comes from: `memory_bytes`, `peak_flops.bf16`, ..."""
    matches: tuple[Match, ...] = ()
    roof_share: float = ROOF_SHARE
    achievable_matmul: float | None = None
    """Best measured bf16 matmul over the peak, 0 to 1."""
    path: str = field(default="", compare=False)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Regular expressions for the name the device reports."""
        return tuple(match.name.pattern for match in self.matches)

    def ridge(self, dtype: str) -> float | None:
        """FLOP/byte above which compute is the larger floor; None where the peak is unknown."""
        peak = self.peak_flops.get(dtype)
        return None if peak is None else peak / self.bandwidth_bytes_per_s


Text = Annotated[str, msgspec.Meta(min_length=1)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(gt=0)]
Dtype = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class _Match(_Table, frozen=True):
    name: str
    memory_gib: tuple[Positive, Positive] | None = None
    multiprocessors: Count | None = None
    warp_size: Count | None = None


class _Memory(_Table, frozen=True):
    gib: Positive
    source: Text


class _Bandwidth(_Table, frozen=True):
    gb_per_s: Positive
    source: Text


class _Peak(_Table, frozen=True):
    tflops: Positive
    source: Text


class _Share(_Table, frozen=True):
    share: Annotated[float, msgspec.Meta(gt=0, le=1)]
    source: Text


class _File(_Table, frozen=True):
    title: Text
    vendor: Text
    unit: Text
    memory: _Memory
    bandwidth: _Bandwidth
    peak: Annotated[dict[Dtype, _Peak], msgspec.Meta(min_length=1)]
    match: tuple[_Match, ...] = ()
    achievable_matmul: _Share | None = None
    roof: _Share | None = None


def parse_chip(text: str, name: str, where: str) -> Chip:
    """The chip of a file's text.

    Args:
        text: TOML as in this module's description.
        name: Name of the chip, by which `--device` finds it.
        where: Path for error messages.

    Raises:
        DeviceError: no TOML, a key is missing or unknown, or a value is of the wrong kind; the
            message names the file and the key.
    """
    try:
        told = msgspec.convert(tomllib.loads(text), _File, strict=True)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise DeviceError(f"{where}: {error}") from error
    return Chip(
        name=name,
        title=told.title,
        vendor=told.vendor,
        unit=told.unit,
        memory_bytes=round(told.memory.gib * _GIB),
        bandwidth_bytes_per_s=round(told.bandwidth.gb_per_s * 1e9),
        peak_flops={dtype: float(round(peak.tflops * 1e12)) for dtype, peak in told.peak.items()},
        sources=_sources(told),
        matches=tuple(_match(entry, where) for entry in told.match),
        roof_share=ROOF_SHARE if told.roof is None else told.roof.share,
        achievable_matmul=None if told.achievable_matmul is None else told.achievable_matmul.share,
        path=where,
    )


def _sources(told: _File) -> dict[str, str]:
    sources = {
        "memory_bytes": told.memory.source,
        "bandwidth_bytes_per_s": told.bandwidth.source,
    }
    sources |= {f"peak_flops.{dtype}": peak.source for dtype, peak in told.peak.items()}
    if told.achievable_matmul is not None:
        sources["achievable_matmul"] = told.achievable_matmul.source
    if told.roof is not None:
        sources["roof_share"] = told.roof.source
    return sources


def _match(entry: _Match, where: str) -> Match:
    try:
        pattern = re.compile(entry.name, re.IGNORECASE)
    except re.error as error:
        raise DeviceError(
            f"{where}: match.name {entry.name!r} is no regular expression: {error}"
        ) from error
    if entry.memory_gib is not None and entry.memory_gib[0] >= entry.memory_gib[1]:
        raise DeviceError(f"{where}: match.memory_gib must be [less, more]: {entry.memory_gib}")
    return Match(pattern, entry.memory_gib, entry.multiprocessors, entry.warp_size)
