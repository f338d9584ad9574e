"""The view `roofline`: floors, dtypes and bounds. The H100 has 3.35e12 bytes/s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import Row, kernel, op, write_trace
from neuron_explorer.devices import load_chip
from neuron_explorer.trace import Trace

CHIP = load_chip("h100-sxm")
BANDWIDTH = CHIP.bandwidth_bytes_per_s


def judge(folder: Path, *rows: Row, device: str | None = None) -> list[dict[str, Any]]:
    trace = Trace.open([write_trace(folder / "t.parquet", rows)], device=device)
    found: list[dict[str, Any]] = trace.sql("SELECT * FROM roofline ORDER BY event_id").to_pylist()
    return found


def unit(folder: Path, duration_ns: int, **columns: object) -> dict[str, Any]:
    return judge(folder, kernel(0, duration_ns, **columns))[0]


def traffic(total: int) -> dict[str, int]:
    return {"read_bytes": total // 2, "write_bytes": total - total // 2}


def test_memory_bound_unit_with_its_arithmetic(tmp_path: Path) -> None:
    found = unit(
        tmp_path, 1000, **traffic(3_350_000 // 2), flops=1000, family="elementwise",
        input_dtypes=["c10::BFloat16"],
    )  # fmt: skip
    assert found["bytes"] == 1_675_000
    assert found["memory_floor_ns"] == found["floor_ns"] == 500
    assert found["share_of_floor"] == pytest.approx(0.5)
    assert found["bound"] == "memory"
    assert found["peak_bytes_per_s"] == BANDWIDTH
    assert found["intensity"] == pytest.approx(1000 / 1_675_000)
    assert (found["chip"], found["modelled"]) == ("h100-sxm", False)


def test_compute_bound_unit_with_its_arithmetic(tmp_path: Path) -> None:
    flops = round(CHIP.peak_flops["bf16"] * 600e-9)
    found = unit(
        tmp_path, 1000, **traffic(1000), flops=flops, family="matmul",
        input_dtypes=["c10::BFloat16", "c10::BFloat16"],
    )  # fmt: skip
    assert (found["dtype"], found["bound"]) == ("bf16", "compute")
    assert found["compute_floor_ns"] == found["floor_ns"] == 600
    assert found["ridge"] == pytest.approx(CHIP.peak_flops["bf16"] / BANDWIDTH)


def test_floor_that_explains_little_is_overhead(tmp_path: Path) -> None:
    assert unit(tmp_path, 10_000, **traffic(3350))["bound"] == "overhead"


@pytest.mark.parametrize(("share", "bound"), [(0.29, "overhead"), (0.31, "memory")])
def test_bound_turns_on_the_threshold(tmp_path: Path, share: float, bound: str) -> None:
    assert unit(tmp_path, 10**6, **traffic(round(BANDWIDTH * share * 1e-3)))["bound"] == bound


@pytest.mark.parametrize(
    "columns",
    [
        {"flops": 10**12, "family": "cat", "cost_note": "shape_list_truncated"},
        {"read_bytes": 10**6},
        {"read_bytes": 10**6, "write_bytes": 10**6, "family": "matmul"},
        {"read_bytes": 9, "write_bytes": 9, "flops": 9, "family": "matmul", "input_dtypes": ["x"]},
        {"device": "cpu", "read_bytes": 10**6, "write_bytes": 10**6},
    ],
)
def test_unknown_cost_is_never_a_bound(tmp_path: Path, columns: dict[str, object]) -> None:
    found = unit(tmp_path, 1000, **columns)
    assert found["bound"] == "unknown"


@pytest.mark.parametrize(
    ("kind", "name", "bound"),
    [
        ("memcpy", "Memcpy HtoD (Pageable -> Device)", "copy"),
        ("memcpy", "Memcpy DtoH (Device -> Pinned)", "copy"),
        ("memcpy", "CopyDeviceToHost", "copy"),
        ("memcpy", "Memcpy PtoP (Device -> Device)", "copy"),
        ("memcpy", "Memcpy DtoD (Device -> Device)", "memory"),
        ("memcpy", "CopyDeviceToDevice", "memory"),
        ("memset", "Memset (Device)", "memory"),
        ("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication"),
        ("collective", "allreduce", "communication"),
    ],
)
def test_what_does_not_move_through_the_memory_has_no_floor(
    tmp_path: Path, kind: str, name: str, bound: str
) -> None:
    found = unit(tmp_path, 1000, kind=kind, name=name, **traffic(2_000_000))
    assert found["bound"] == bound
    assert (found["floor_ns"] is None) == (bound != "memory")


@pytest.mark.parametrize(
    ("dtypes", "family", "dtype"),
    [
        (["float"], "matmul", "fp32"),
        (["double"], "matmul", "fp64"),
        (["c10::Half"], "attention", "fp16"),
        (["", "Scalar", "c10::BFloat16"], "convolution", "bf16"),
        (["c10::Float8_e4m3fn"], "matmul", "fp8"),
        (["signed char"], "matmul", "int8"),
        (["c10::BFloat16"], "elementwise", "fp32"),
        (["double"], "elementwise", "fp64"),
        (["long int"], "elementwise", "fp32"),
        (["long int"], "matmul", None),
        ([], "matmul", None),
    ],
)
def test_dtype_whose_peak_counts(
    tmp_path: Path, dtypes: list[str], family: str, dtype: str | None
) -> None:
    found = unit(tmp_path, 1000, family=family, input_dtypes=dtypes, flops=1)
    assert found["dtype"] == dtype
    assert found["peak_flops"] == (None if dtype is None else CHIP.peak_flops[dtype])


@pytest.mark.parametrize(
    ("name", "share", "dtype"),
    [
        ("ampere_sgemm_128x64_nn", 0.5, "fp32"),
        ("cutlass_80_tensorop_s1688gemm_128x128", 0.5, "tf32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32", 0.5, "tf32"),
        ("ampere_sgemm_128x64_nn", 1.5, "tf32"),
    ],
)
def test_tf32_only_on_evidence(tmp_path: Path, name: str, share: float, dtype: str) -> None:
    flops = round(CHIP.peak_flops["fp32"] * share * 1e-3)
    found = unit(tmp_path, 10**6, name=name, family="matmul", input_dtypes=["float"], flops=flops)
    assert found["dtype"] == dtype


def test_shapes_and_family_come_from_the_op(tmp_path: Path) -> None:
    caused = op(0, 10, name="aten::mm", family="matmul", input_dtypes=["c10::Half"])
    found = judge(tmp_path, caused, kernel(5, 10, op_id=0, flops=100))
    assert [(row["op_name"], row["family"], row["dtype"]) for row in found] == [
        ("aten::mm", "matmul", "fp16")
    ]


def test_another_chip_judges_with_its_own_figures(tmp_path: Path) -> None:
    found = judge(tmp_path, kernel(0, 10**6, **traffic(10**9)), device="trn2")[0]
    trn2 = load_chip("trn2")
    assert (found["chip"], found["modelled"]) == ("trn2", True)
    assert found["floor_ns"] == round(1e18 / trn2.bandwidth_bytes_per_s)


def test_zero_duration_has_no_share(tmp_path: Path) -> None:
    assert unit(tmp_path, 0, **traffic(100))["share_of_floor"] is None
