"""Measures this CPU's roof: copy bandwidth, and matmul FLOP/s by dtype.

The figures are what this machine reached, so an op at 100 % of them is as fast as a plain copy or
a large matmul here; a vendor's peak would be further away. Memory traffic is counted as the
program sees it, bytes read plus bytes written: the fetch of a line before it is overwritten is
not counted, here or in the costs of ops.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from neuron_explorer.devices.chip import Chip, parse_chip
from neuron_explorer.devices.roof import CPU, cpu_model, roof_path, usable_cores
from neuron_explorer.errors import OutputError

Work = Callable[[], object]
Matmul = Callable[[int], Work]
"""Takes a size n, gives a call that multiplies two n x n matrices once."""

_MIB = 2**20
_SMALLEST = 128
_LEAST_ROUNDS = 3
_PASSES = 4


def calibrate(
    *,
    seconds: float = 12.0,
    copy_bytes: int | None = None,
    largest: int = 4096,
    path: Path | None = None,
) -> Chip:
    """Measures this CPU and keeps the result for `load_chip("cpu")`.

    Args:
        seconds: About how long to measure, a third of it copying.
        copy_bytes: Bytes of each of the two arrays of the copy; beyond the caches by default.
        largest: Largest matrix size to multiply.
        path: File to write instead of this machine's in the cache.

    Raises:
        OutputError: the file cannot be written.
    """
    library, matmuls = _matmuls()
    bandwidth, rates = _best_of_passes(matmuls, copy_bytes or _beyond_caches(), largest, seconds)
    text = _render(bandwidth, rates, library)
    path = path or roof_path()
    _write(path, text)
    return parse_chip(text, CPU, str(path))


def _best_of_passes(
    matmuls: Mapping[str, Matmul], copy_bytes: int, largest: int, seconds: float
) -> tuple[float, dict[str, float]]:
    """Bytes/s of copies, FLOP/s by dtype: a busy spell must not spoil all rounds of one of them."""
    share = seconds / _PASSES / (2 + len(matmuls))
    bandwidth, rates = 0.0, dict.fromkeys(matmuls, 0.0)
    for number in range(_PASSES):
        bandwidth = max(bandwidth, copy_bytes_per_s(copy_bytes, 2 * share))
        with _one_thread_each_second_pass(number):
            for dtype, make in matmuls.items():
                known = rates[dtype]
                rates[dtype] = max(known, matmul_flops(make, largest, share, known) or 0.0)
    return bandwidth, {dtype: rate for dtype, rate in rates.items() if rate}


@contextlib.contextmanager
def _one_thread_each_second_pass(number: int) -> Iterator[None]:
    """Threads that wait for each other crawl as soon as another process holds one of the cores."""
    torch = sys.modules.get("torch")
    if torch is None or number % 2:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def copy_bytes_per_s(array_bytes: int, seconds: float) -> float:
    """Best rate of copying one array to another with every usable core, read plus written bytes."""
    parts = usable_cores()
    source = np.ones(max(array_bytes // 8, parts), dtype=np.float64)
    target = np.zeros_like(source)
    pairs = list(zip(np.array_split(target, parts), np.array_split(source, parts), strict=True))
    with ThreadPoolExecutor(parts) as pool:

        def copy() -> None:
            for done in [pool.submit(np.copyto, *pair) for pair in pairs]:
                done.result()

        return 2 * source.nbytes / _best_s(copy, seconds)


def matmul_flops(make: Matmul, largest: int, seconds: float, known: float = 0.0) -> float | None:
    """Best FLOP/s over sizes that double while there is time; None where the dtype cannot.

    `known` FLOP/s were reached before: a busy spell at a small size must not end the growth.
    """
    best, size = 0.0, min(_SMALLEST, largest)
    until = time.perf_counter() + 2 * seconds
    while size <= largest:
        try:
            taken = _best_s(make(size), seconds / 8)
        except (RuntimeError, TypeError):  # this build of the library has no such matmul
            return best or None
        best = max(best, 2 * size**3 / taken)
        next_s = 8 * 2 * size**3 / max(best, known)  # twice the size is eight times the work
        if next_s > seconds / (1 + _LEAST_ROUNDS) or time.perf_counter() > until:
            break
        size *= 2
    return best


def _best_s(work: Work, seconds: float) -> float:
    """Shortest time of one call: noise only ever adds."""
    work()
    best, rounds, until = float("inf"), 0, time.perf_counter() + seconds
    while rounds < _LEAST_ROUNDS or time.perf_counter() < until:
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
        rounds += 1
    return max(best, 1e-9)  # a clock that did not tick must not make an infinite rate


def _matmuls() -> tuple[str, dict[str, Matmul]]:
    """Name of the library and its matmul by dtype: torch's where it is installed."""
    try:
        import torch
    except ImportError:
        return f"numpy {np.__version__}", {
            "fp32": partial(_numpy_matmul, np.dtype(np.float32)),
            "fp64": partial(_numpy_matmul, np.dtype(np.float64)),
        }

    def make(dtype: torch.dtype, size: int) -> Work:
        left, right = (torch.ones(size, size, dtype=dtype) for _ in range(2))
        out = torch.empty(size, size, dtype=dtype)
        return lambda: torch.mm(left, right, out=out)

    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    dtypes |= {"fp16": torch.float16, "fp64": torch.float64}
    threads = f"torch {torch.__version__}, best of 1 and {torch.get_num_threads()} threads"
    return threads, {name: partial(make, dtype) for name, dtype in dtypes.items()}


def _numpy_matmul(dtype: np.dtype[np.floating], size: int) -> Work:
    left, right, out = (np.ones((size, size), dtype=dtype) for _ in range(3))
    return lambda: np.matmul(left, right, out=out)


def _beyond_caches() -> int:
    """Bytes of an array that no cache holds, and that fits into memory twice with ease."""
    caches = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    sizes = [path.read_text("ascii").strip() for path in caches]
    kib = [int(size[:-1]) for size in sizes if size.endswith("K") and size[:-1].isdigit()]
    wanted = max(256 * _MIB, 4 * 1024 * max(kib, default=0))
    return min(wanted, _memory_bytes() // 8)


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _render(bandwidth: float, rates: Mapping[str, float], library: str) -> str:
    """The chip file: every number with how it was measured."""
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    on = f"measured on {platform.node()} on {when}"
    lines = [
        f"title = {_quoted(f'{cpu_model()}, {usable_cores()} cores')}",
        f"vendor = {_quoted(platform.machine() or 'unknown')}",
        'unit = "host"',
        f"\n[memory]\ngib = {_memory_bytes() / 2**30:.3f}",
        f"source = {_quoted(f'physical memory of {platform.node()}')}",
        f"\n[bandwidth]\ngb_per_s = {bandwidth / 1e9:.6f}",
        f"source = {_quoted(f'{on}: best copy with numpy {np.__version__}, all cores')}",
    ]
    for dtype, rate in rates.items():
        lines.append(f"\n[peak.{dtype}]\ntflops = {rate / 1e12:.9f}")
        lines.append(f"source = {_quoted(f'{on}: best square matmul with {library}')}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are a subset of TOML's."""
    return json.dumps(text)


def _write(path: Path, text: str) -> None:
    """Complete under its final name or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:
            fresh = Path(folder) / path.name
            fresh.write_text(text, "utf-8")
            fresh.replace(path)
    except OSError as error:
        raise OutputError(f"cannot keep the measured roof at {path}: {error}") from error
