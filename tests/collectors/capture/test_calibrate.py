"""The measured roof of this CPU: plausible, kept whole, found again."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from neuron_explorer.collectors.capture.calibrate import (
    calibrate,
    copy_bytes_per_s,
    matmul_flops,
)
from neuron_explorer.devices import Chip, chip_names, cpu_chip, load_chip
from neuron_explorer.devices.roof import roof_path
from neuron_explorer.errors import DeviceError, OutputError

MIB = 2**20


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def quick(path: Path | None = None) -> Chip:
    return calibrate(seconds=0.2, copy_bytes=4 * MIB, largest=128, path=path)


def test_a_measured_roof_is_found_again() -> None:
    measured = quick()
    assert cpu_chip() == measured
    assert load_chip("cpu") == measured
    assert "cpu" in chip_names()


def test_the_figures_are_plausible() -> None:
    chip = quick()
    assert chip.unit == "host"
    assert 1e8 < chip.bandwidth_bytes_per_s < 1e13
    assert {"fp32", "fp64"} <= set(chip.peak_flops)
    assert all(1e6 < rate < 1e15 for rate in chip.peak_flops.values())
    assert all("measured on" in text for key, text in chip.sources.items() if "peak" in key)


def test_nothing_but_the_roof_stays_in_the_cache(empty_cache: Path) -> None:
    quick()
    quick()
    assert [path for path in empty_cache.rglob("*") if path.is_file()] == [roof_path()]


def test_an_unwritable_place_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    with pytest.raises(OutputError, match="file"):
        quick(tmp_path / "file" / "roof.toml")


def test_a_damaged_roof_is_named() -> None:
    roof_path().parent.mkdir(parents=True)
    roof_path().write_text("title = ", "utf-8")
    with pytest.raises(DeviceError, match=roof_path().name):
        cpu_chip()


def test_a_dtype_without_a_matmul_is_unknown() -> None:
    def make(_size: int) -> Callable[[], object]:
        def work() -> object:
            raise RuntimeError('"addmm_impl_cpu_" not implemented for this dtype')

        return work

    assert matmul_flops(make, 256, 0.01) is None


def test_a_slow_matmul_stops_growing() -> None:
    sizes: list[int] = []

    def make(size: int) -> Callable[[], object]:
        sizes.append(size)
        return lambda: sum(range(size**2))

    assert matmul_flops(make, 2**20, 0.05)
    assert sizes[0] == 128
    assert max(sizes) < 2**14


def test_copying_counts_reads_and_writes() -> None:
    assert copy_bytes_per_s(MIB, 0.01) > 1e8


def test_without_torch_numpy_measures(tmp_path: Path) -> None:
    code = f"""
import sys
import time
sys.modules["torch"] = None
from pathlib import Path
from neuron_explorer.collectors.capture.calibrate import calibrate
path = Path({str(tmp_path)!r}) / "roof.toml"
chip = calibrate(seconds=0.1, copy_bytes=2**20, largest=128, path=path)
print(*sorted(chip.peak_flops), chip.sources["peak_flops.fp32"])
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("fp32 fp64 measured on")
    assert "numpy" in run.stdout


def test_a_busy_spell_at_the_small_size_does_not_end_the_growth() -> None:
    sizes: list[int] = []

    def make(size: int) -> Callable[[], object]:
        sizes.append(size)
        return lambda: time.sleep(0.03 if size == 128 else 0.001)

    rate = matmul_flops(make, 512, 0.2, known=2 * 128**3 / 1e-4)
    assert sizes == [128, 256, 512]
    assert rate is not None
    assert rate > 2 * 256**3 / 0.03
