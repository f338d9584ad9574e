"""`neuron-explorer verify` as a person meets it: choice, report, interrupt, no torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded_ops import recorded, tensor

from builders import Row, op, row, write_trace
from neuron_explorer.analyzers import run
from neuron_explorer.analyzers.verify.results import keep, results_path
from neuron_explorer.cli import main
from neuron_explorer.commands import verify as command
from neuron_explorer.findings import Finding
from neuron_explorer.reports.verdicts import verdict
from neuron_explorer.trace import Trace

Capture = pytest.CaptureFixture[str]

OPTIMIZER = "single_tensor_optimizer"
COPIES = "layout_copies"


def _rows() -> list[Row]:
    """An optimizer that runs its ops tensor by tensor, and a copy that nothing near it reads."""
    one = [tensor(8, 4), tensor(8, 4), tensor(8, 4), ("Scalar", [], "1")]
    step = row(
        *("framework", "annotation", 0, 40_000_000),
        name="Optimizer.step#SGD.step",
        phase="optimizer",
        pid=1,
        tid=1,
        source_file="model.py",
        source_line=7,
        source_via="line",
    )
    updates = [
        recorded("addcdiv_", one, n * 1_000_000 + 1, phase="optimizer", family="optimizer")
        for n in range(20)
    ]
    target, source = tensor(16, 8), tensor(16, 8, strides=[1, 16])
    clone = op(50_000_000, 2_000_000, name="aten::clone", input_shapes=[[16, 8]])
    copy = recorded("copy_", [target, source, ("Scalar", [], "False")], 50_100_000, family="copy")
    return [step, *updates, clone, {**copy, "parent_id": 21}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.parquet", _rows())


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.torch
def test_every_finding_shown_is_measured_and_kept(path: Path, torch: Any, capsys: Capture) -> None:
    assert torch.__version__
    assert main(["verify", str(path), "--rounds", "5", "--threads", "1"]) == 0
    page = capsys.readouterr()
    assert "foreach=False" in page.out
    assert "no op close behind the copy reads a tensor of its size" in " ".join(page.out.split())
    assert f"kept in {results_path(path)}" in page.err
    assert main(["analyze", str(path), "--json"]) == 0
    analyzed = {f["analyzer"]: f for f in json.loads(capsys.readouterr().out)["findings"]}
    assert analyzed[COPIES]["verified"]["verdict"] == "cannot be replayed"
    kept = analyzed[OPTIMIZER]["verified"]
    assert kept["claim"]["saving_high_ns"] == analyzed[OPTIMIZER]["saving_high_ns"]
    assert (kept["rounds"], kept["before"]) == (5, "foreach=False")


@pytest.mark.torch
def test_json_has_the_measurement(path: Path, torch: Any, capsys: Capture) -> None:
    assert torch.__version__
    assert main(["verify", str(path), OPTIMIZER, "--rounds", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["exit_code"]) == ("neuron_explorer.verify/1", 0)
    (finding,) = said["findings"]
    assert finding["analyzer"] == OPTIMIZER
    assert finding["verified"]["before_ns"]["median"] > 0


@pytest.mark.torch
def test_a_finding_that_is_not_there_is_a_wrong_usage(
    path: Path, torch: Any, capsys: Capture
) -> None:
    assert torch.__version__
    assert main(["verify", str(path), "device_idle"]) == 2
    assert "no finding is called device_idle" in capsys.readouterr().err
    assert main(["verify", str(path), "--device", "cuda:99"]) == 2
    assert "no device cuda:99 on this machine" in capsys.readouterr().err


@pytest.mark.torch
def test_an_interrupt_keeps_what_was_measured(
    path: Path, torch: Any, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert torch.__version__
    runner = command._replaying("runner")
    measured: list[str] = []

    def verify_one(_: Trace, finding: Finding, __: object) -> dict[str, object]:
        if measured:
            raise KeyboardInterrupt
        measured.append(finding.id)
        return {"verdict": "confirmed", "why": "by hand"}

    monkeypatch.setattr(runner, "verify_one", verify_one)
    assert main(["verify", str(path)]) == 130
    page = capsys.readouterr()
    assert "stopped: 1 of " in page.err
    assert "interrupted" in page.err
    assert list(json.loads(results_path(path).read_text("utf-8"))["findings"]) == measured


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(sys.modules):
        if name.startswith("neuron_explorer.analyzers.verify."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    yield
    for name in list(sys.modules):
        if name.startswith("neuron_explorer.analyzers.verify."):
            del sys.modules[name]


@pytest.mark.usefixtures("without_torch")
def test_without_torch_one_line_says_so(path: Path, capsys: Capture) -> None:
    assert main(["verify", str(path)]) == 1
    page = capsys.readouterr()
    assert page.out == ""
    assert page.err == (
        "neuron-explorer: verify replays ops with torch, which is not installed\n"
        "hint: pip install 'neuron-explorer[torch]'\n"
    )


@pytest.mark.usefixtures("without_torch")
def test_without_torch_results_are_still_shown(path: Path, capsys: Capture) -> None:
    with Trace.open([path]) as trace:
        (finding,) = run(trace, only=[COPIES]).findings
    keep(path, finding, MEASURED)
    for form, said in (("text", "✓ confirmed: eager 2 ms"), ("md", "**verified**: confirmed")):
        assert main(["analyze", str(path), "--only", COPIES, "--format", form]) == 0
        assert said in capsys.readouterr().out


def _spread(median: float) -> dict[str, float]:
    return {"median": median, "low": median, "high": median}


MEASURED: dict[str, object] = {
    "verdict": "confirmed",
    "why": None,
    "before": "eager",
    "after": "torch.compile",
    "before_ns": _spread(2_000_000),
    "after_ns": _spread(1_000_000),
    "gain": _spread(0.5),
    "predicted_low": 0.031,
    "predicted_high": 0.4,
    "covered": 1.0,
    "device": "cpu, 2 threads",
    "recorded_device": "cpu",
    "other_device": False,
    "busy": None,
}
SAID = "eager 2 ms, torch.compile 1 ms"


def _said(**changed: object) -> str | None:
    verified = MEASURED | changed
    return verdict(Finding("a-1", "a", "info", "title", "message", "advice", verified=verified))


def test_the_words_of_a_verdict() -> None:
    assert _said() == (
        f"confirmed: {SAID}, 50 % less (50 % to 50 %), claimed 3.1 % to 40 %; on cpu, 2 threads"
    )
    assert _said(predicted_low=0.0, gain=_spread(-0.2), verdict="not confirmed") == (
        f"not confirmed: {SAID}, 20 % more (-20 % to -20 %), claimed up to 40 %; on cpu, 2 threads"
    )
    assert _said(gain=_spread(-6.0)) is not None
    assert "7 times as long" in str(_said(gain=_spread(-6.0)))
    assert str(_said(predicted_high=None)).endswith("; nothing was claimed; on cpu, 2 threads")
    assert str(_said(covered=0.7)).endswith("; 70 % of it replayed")
    assert str(_said(busy="load")).endswith("; the machine was busy")


def test_another_device_is_said() -> None:
    assert str(_said(other_device=True, recorded_device="cuda:0")).endswith(
        "on cpu, 2 threads, recorded on cuda:0"
    )
    assert str(_said(other_device=True)).endswith("recorded on cpu of another machine")
