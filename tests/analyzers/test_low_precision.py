"""fp32 products on a CPU are worth a word only where the peaks of that very CPU say so."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from builders import op
from neuron_explorer.analyzers import run
from neuron_explorer.devices.roof import roof_path
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

OpenTrace = Callable[..., Trace]
HERE = {"environment": {"host": platform.node()}}
ELSEWHERE = {"environment": {"host": "another-machine"}}
FP32 = 1e12
ROOF = """
title = "CPU of this test"
vendor = "test"
unit = "host"

[memory]
gib = 16
source = "stated by this test"

[bandwidth]
gb_per_s = 100
source = "stated by this test"

[peak.fp32]
tflops = {fp32}
source = "stated by this test"

[peak.bf16]
tflops = {bf16}
source = "stated by this test"
"""


@pytest.fixture
def calibrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Leaves the peaks of a CPU where `calibrate` does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def left(bf16: float, fp32: float = FP32) -> None:
        roof_path().parent.mkdir(parents=True, exist_ok=True)
        roof_path().write_text(ROOF.format(fp32=fp32 / 1e12, bf16=bf16 / 1e12), encoding="utf-8")

    return left


def findings(open_trace: OpenTrace, environment: Mapping[str, object]) -> list[Finding]:
    size = 1024
    product = op(
        0,
        4_000_000,
        name="aten::mm",
        family="matmul",
        input_shapes=[[size, size], [size, size]],
        input_dtypes=["float", "float"],
        read_bytes=8 * size**2,
        write_bytes=4 * size**2,
        flops=2 * size**3,
        source_file="/m.py",
        source_line=3,
    )
    report = run(open_trace([product], {"devices": [], **environment}), ["low_precision_matmul"])
    assert report.ran == ["low_precision_matmul"]
    return report.findings


def test_a_cpu_with_faster_bf16_is_told_on_which_roof(
    open_trace: OpenTrace, calibrated: Callable[..., None]
) -> None:
    calibrated(bf16=4 * FP32)
    (found,) = findings(open_trace, HERE)
    assert "4.0x as fast by the peaks calibrated on this machine" in found.message
    # 2 * 1024^3 flop at 1e12 flop/s are 54 % of the 4 ms
    assert "reach 54 % of its fp32 roof" in found.message


def test_a_cpu_without_faster_bf16_is_left_alone(
    open_trace: OpenTrace, calibrated: Callable[..., None]
) -> None:
    calibrated(bf16=FP32)
    assert findings(open_trace, HERE) == []


def test_another_machine_s_cpu_is_not_judged_by_this_one(
    open_trace: OpenTrace, calibrated: Callable[..., None]
) -> None:
    calibrated(bf16=4 * FP32)
    assert findings(open_trace, ELSEWHERE) == []


def test_a_peak_that_the_work_beats_by_far_is_no_roof(
    open_trace: OpenTrace, calibrated: Callable[..., None]
) -> None:
    calibrated(bf16=FP32, fp32=FP32 / 40)
    assert findings(open_trace, HERE) == []
