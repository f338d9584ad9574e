"""What the device promises to a script, checked in processes of their own."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from dryrun_scripts import SCRIPTS, Run, printed, started

LAUNCH_NS = 73_000
FP32, BF16 = 1e-6, 2e-3
"""Largest difference to the CPU's losses, relative. The same kernels run; sums of an optimizer's
`foreach` form may come in another order. Under bf16 other ops stay in fp32 than on the CPU."""


@pytest.mark.parametrize("name", ["tensors", "state", "compiled", "shapes", "grouped"])
def test_checks(script: Run, name: str) -> None:
    found = script(f"{name}.py")
    assert len(found) >= 5
    assert {check: error for check, error in found.items() if error} == {}


@pytest.mark.parametrize("mode", ["eager", "adaptive"])
def test_losses_equal_the_cpus(script: Run, mode: str) -> None:
    models = ["llama"] if find_spec("transformers") and mode == "eager" else []
    found = script("train.py", mode, *models)
    assert len(found["fp32"]) == (9 if mode == "eager" else 3) + len(models)
    for kind, tolerance in (("fp32", FP32), ("bf16", BF16)):
        for name, (ours, theirs) in found[kind].items():
            assert len(ours) == 3
            assert ours == pytest.approx(theirs, rel=tolerance), name


def test_two_processes_train_as_on_the_cpu(script: Run, tmp_path: Path) -> None:
    del script  # only asks whether torch is there
    found: list[list[dict[str, Any]]] = []
    for device in ("cpu", "neuron"):
        running = [started(SCRIPTS / "ddp.py", rank, tmp_path / device, device) for rank in (0, 1)]
        found.append([printed(rank) for rank in running])
    for theirs, ours in zip(*found, strict=True):
        assert ours["losses"] == pytest.approx(theirs["losses"], rel=FP32)
        assert ours["collectives"] == theirs["collectives"]
        assert ours["by the device's back end"] == theirs["collectives"]
        assert ours["queues"] == ["collective 0"]
        assert "c10d::allreduce_" in ours["names"]
        # a destroyed group leaves no threads behind, and its name to another
        assert ours["links"] == [1, 0]
        assert len(ours["late"]) > 3
        assert all(ours["late"])
        check_costs(ours["costs"])
        check_shapes_only(ours)


def check_costs(costs: list[Any]) -> None:
    """Two ranks: half of the bytes each way around the ring, 1.5 us a hop, 128 GB/s."""
    reduced = [(read, ns) for name, read, _, ns in costs if name == "c10d::allreduce_"]
    assert len(reduced) > 3
    for read, modelled_ns in reduced:
        assert modelled_ns == LAUNCH_NS + 2 * 1500 + round(2 * (read / 2) / 128)
    sent = [(read, write, ns) for name, read, write, ns in costs if name == "c10d::broadcast_"]
    assert sent
    for read, _, modelled_ns in sent:
        assert modelled_ns == LAUNCH_NS + 1500 + round(read / 128)


def check_shapes_only(ours: dict[str, Any]) -> None:
    """Without values, the training asks for the same collectives at the same cost."""
    training = Counter(map(tuple, ours["shapes"]["costs"]))
    assert training
    assert training <= Counter(map(tuple, ours["costs"]))
    assert all(ours["shapes"]["late"])
