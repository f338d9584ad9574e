"""Every kind of change runs before and after on what was recorded: small, real replays."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_ops import recorded, scalar, tensor, two_runs

from builders import Row, write_trace
from neuron_explorer.analyzers import analyzers, run
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

torch = pytest.importorskip("torch")

from neuron_explorer.analyzers.verify import machine, registry  # noqa: E402  only where torch is
from neuron_explorer.analyzers.verify.experiments import aligned_matmul  # noqa: E402
from neuron_explorer.analyzers.verify.plans import Case  # noqa: E402
from neuron_explorer.analyzers.verify.recorded import Slot  # noqa: E402
from neuron_explorer.analyzers.verify.runner import Options, verify_one  # noqa: E402

pytestmark = pytest.mark.torch

QUICK = Options(torch.device("cpu"), rounds=5, seconds=5, threads=1)
SURE = replace(QUICK, rounds=31)
"""The median of so many rounds tells a large gain even where others use this machine."""

LIST = "ScalarList"

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="torch.compile needs g++ on a CPU"
)


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    def open_(rows: Sequence[Row]) -> Trace:
        return Trace.open([write_trace(tmp_path / "trace.parquet", rows)])

    return open_


def _finding(analyzer: str, ids: Sequence[int], **fields: Any) -> Finding:
    given: dict[str, Any] = {"saving_low_ns": 0, "saving_high_ns": 900_000, "rank": 0}
    given |= {"event_ids": tuple(ids)} | fields
    return Finding(f"{analyzer}-1", analyzer, "info", "title", "message", "advice", **given)


def _verdict(result: Mapping[str, object]) -> tuple[object, object]:
    return result["verdict"], result.get("why")


def _gain(result: Mapping[str, object]) -> float:
    gain = result["gain"]
    assert isinstance(gain, Mapping)
    return float(gain["median"])


def _listed(result: Mapping[str, object], name: str) -> list[dict[str, Any]]:
    found = result[name]
    assert isinstance(found, list)
    return found


def _slot(described: Any) -> Slot:
    dtype, shape, strides = described
    return Slot(dtype, tuple(shape), tuple(strides))


def test_every_experiment_and_reason_belongs_to_an_analyzer() -> None:
    known = registry.planners().keys() | registry.reasons().keys()
    assert known <= analyzers().keys()
    assert not registry.planners().keys() & registry.reasons().keys()


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*script_method. is deprecated:DeprecationWarning")
def test_a_run_of_eager_ops_is_compared_with_its_compiled_form(opened: Any) -> None:
    with opened(two_runs(size=4096)) as trace:
        (finding,) = run(trace, only=["compile_opportunities"]).findings
        result = verify_one(trace, finding, QUICK)
    assert result["why"] is None
    assert (result["before"], result["after"]) == ("eager", "torch.compile")
    (trial,) = _listed(result, "trials")
    assert trial["occurrences"] == 2
    assert trial["what"] == "mul [4096,32], tanh [4096,32], add [4096,32]"
    assert trial["recorded_ns"] == 6 * 900_000
    assert result["claim_of_ns"] == 6 * 900_000 + 4 * 100_000  # with the gaps that go as well
    assert result["predicted_high"] == (finding.saving_high_ns or 0) / 5_800_000
    # how fast a run this small is depends on the machine; that both forms ran does not
    assert trial["ns"]["before"]["median"] > 0
    assert trial["ns"]["after"]["median"] > 0
    assert trial["ns"]["before"] != trial["ns"]["after"]
    assert result["rounds"] == QUICK.rounds
    assert result["covered"] == 1.0


def test_ops_that_nothing_could_be_fused_with_are_refused(opened: Any) -> None:
    with opened([recorded("tanh", [tensor(8, 8)], 0, family="elementwise")]) as trace:
        result = verify_one(trace, _finding("hbm_bound_eager_ops", [0]), QUICK)
    assert _verdict(result) == (
        "cannot be replayed",
        "no neighbour on its queue could be fused with these ops",
    )


def test_matrix_work_is_compared_with_its_narrow_form_and_the_casts_are_told(opened: Any) -> None:
    rows = [recorded("mm", [tensor(32, 48), tensor(48, 16)], n * 1_000_000) for n in range(3)]
    finding = _finding("low_precision_matmul", range(3), evidence={"target": "bf16"})
    with opened(rows) as trace:
        result = verify_one(trace, finding, QUICK)
    assert result["after"] == "bf16"
    (trial,) = _listed(result, "trials")
    assert list(trial["ns"]) == ["before", "after", "without casts"]
    assert result["gain_of_others"].keys() == {"without casts"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("of", "of_the_step"), [("device", 9_000), ("recorded", 950_000)])
def test_the_claim_is_of_the_work_whatever_host_and_recorder_make_of_it_in_the_step(
    of: str, of_the_step: int, opened: Any
) -> None:
    rows = [recorded("mm", [tensor(32, 48), tensor(48, 16)], 0)]
    bounds = {f"{of}_saving_low_ns": 90_000, f"{of}_saving_high_ns": 450_000}
    evidence = {"target": "bf16", **bounds}
    finding = _finding("low_precision_matmul", [0], saving_high_ns=of_the_step, evidence=evidence)
    with opened(rows) as trace:
        result = verify_one(trace, finding, QUICK)
    assert (result["predicted_low"], result["predicted_high"]) == (0.1, 0.5)


def test_tf32_is_for_cuda(opened: Any) -> None:
    rows = [recorded("mm", [tensor(32, 48), tensor(48, 16)], 0)]
    finding = _finding("low_precision_matmul", [0], evidence={"target": "TF32"})
    with opened(rows) as trace:
        result = verify_one(trace, finding, QUICK)
    assert _verdict(result)[1] == "TF32 exists on CUDA devices only, and this is cpu"


def test_an_optimizer_is_built_again_with_the_recorded_shapes(opened: Any) -> None:
    one = [tensor(8, 4), tensor(8, 4), tensor(8, 4), scalar("1")]
    rows = [recorded("addcdiv_", one, n * 1_000_000, phase="optimizer") for n in range(20)]
    evidence = {"optimizer": "AdamW.step", "calls": 1, "device": "cpu", "host_ns": 30_000_000}
    finding = _finding("single_tensor_optimizer", range(20), evidence=evidence)
    with opened(rows) as trace:
        result = verify_one(trace, finding, SURE)
    # one fused call instead of some 200 ops: faster on any machine
    assert _gain(result) > 0.3
    assert (result["before"], result["after"]) == ("foreach=False", "fused=True")
    assert result["claim_of_ns"] == 30_000_000
    assert _listed(result, "trials")[0]["what"] == "AdamW.step of 20 tensors"


def test_an_optimizer_that_torch_does_not_have_is_refused(opened: Any) -> None:
    finding = _finding("single_tensor_optimizer", [0], evidence={"optimizer": "Lion.step"})
    with opened([recorded("add_", [tensor(4), tensor(4), scalar("1")], 0)]) as trace:
        result = verify_one(trace, finding, QUICK)
    assert _verdict(result)[1] == "torch.optim has no optimizer 'Lion' to build again"


def _copied(reader: Row) -> list[Row]:
    target, source = tensor(16, 8, 4), tensor(16, 8, 4, strides=[32, 1, 8])
    return [recorded("copy_", [target, source, scalar("False")], 0, family="copy"), reader]


def test_a_copy_is_compared_with_its_reader_on_strided_memory(opened: Any) -> None:
    reader = recorded("sum", [tensor(16, 8, 4), ("", [], "")], 1_000_000, family="reduction")
    with opened(_copied(reader)) as trace:
        result = verify_one(trace, _finding("layout_copies", [0]), QUICK)
    assert (result["before"], result["after"]) == ("copied, then read", "read as it lies")
    assert result["claim_of_ns"] == 2 * 900_000  # the copy and its reader


def test_a_copy_whose_reader_needs_another_shape_is_refuted(opened: Any) -> None:
    reader = recorded("tanh", [tensor(16, 32)], 1_000_000, family="elementwise")
    with opened(_copied(reader)) as trace:
        result = verify_one(trace, _finding("layout_copies", [0]), QUICK)
    assert result["verdict"] == "not confirmed"
    assert "is no view: the copy stays" in str(result["why"])


def test_a_copy_that_nothing_reads_is_refused(opened: Any) -> None:
    reader = recorded("tanh", [tensor(5)], 1_000_000, family="elementwise")
    with opened(_copied(reader)) as trace:
        result = verify_one(trace, _finding("layout_copies", [0]), QUICK)
    assert result["verdict"] == "cannot be replayed"


def test_repeated_casts_are_compared_with_one(opened: Any) -> None:
    slots = [tensor(64, 64, dtype="c10::BFloat16"), tensor(64, 64), scalar("False")]
    rows = [recorded("copy_", slots, n * 1_000_000, family="cast") for n in range(4)]
    finding = _finding(
        "repeated_casts", range(4), saving_low_ns=None, evidence={"casts": 4, "repeats": 3}
    )
    with opened(rows) as trace:
        result = verify_one(trace, finding, SURE)
    assert _gain(result) > 0.3  # one cast instead of four
    assert result["before"] == "4 casts"


def test_a_convolution_is_compared_with_one_without_bias(opened: Any) -> None:
    stride, padding, dilation = "[1, 1]", "[0, 0]", "[1, 1]"
    convolution = [
        *(tensor(2, 3, 8, 8), tensor(4, 3, 3, 3), tensor(4)),
        *((LIST, [], text) for text in (stride, padding, dilation)),
        scalar("1"),
    ]
    rows = [
        recorded("conv2d", convolution, 0),
        recorded("batch_norm", [tensor(2, 4, 6, 6), *[tensor(4)] * 4], 1_000_000),
    ]
    with opened(rows) as trace:
        result = verify_one(trace, _finding("convolution_bias_before_norm", [0]), QUICK)
    assert result["after"] == "bias=False"
    assert result["claim_of_ns"] == 2 * 900_000


def softmax_in_three_ops() -> list[Row]:
    whole, column = tensor(256, 512), tensor(256, 1)
    dims: tuple[str, list[int], str] = (LIST, [], "[-1]")
    kept: dict[str, object] = {"output_shapes": [[256, 512]], "family": "elementwise"}
    summed: dict[str, object] = {"output_shapes": [[256, 1]], "family": "reduction"}
    return [
        recorded("exp", [whole], 0, **kept),
        recorded("sum", [whole, dims, scalar("True"), ("", [], "")], 1_000_000, **summed),
        recorded("div", [whole, column], 2_000_000, **kept),
    ]


def test_what_is_written_out_is_compared_with_the_op_that_pytorch_has(opened: Any) -> None:
    with opened(softmax_in_three_ops()) as trace:
        (finding,) = run(trace, only=["handwritten_fused_ops"]).findings
        result = verify_one(trace, finding, SURE)
    assert (result["before"], result["after"]) == ("as written", "one softmax")
    (trial,) = _listed(result, "trials")
    assert trial["what"] == "exp [256,512], sum [256,512], div [256,512]"
    assert result["claim_of_ns"] == trial["recorded_ns"] == 3 * 900_000
    assert _gain(result) > 0  # one pass and one dispatch instead of three


def test_a_pattern_that_no_op_covers_is_refused(opened: Any) -> None:
    finding = _finding("handwritten_fused_ops", [0], evidence={"pattern": "rotary_embedding"})
    with opened(softmax_in_three_ops()) as trace:
        result = verify_one(trace, finding, QUICK)
    assert _verdict(result)[1] == "PyTorch has no one op for rotary embedding"


def test_many_small_tensors_are_compared_with_one_call_of_the_list(opened: Any) -> None:
    rows = [
        recorded("mul_", [tensor(16), scalar("0.5")], n * 1_000_000, output_shapes=[[16]])
        for n in range(64)
    ]
    evidence = {"runs": 2, "taken_ns": 70_000_000}
    with opened(rows) as trace:
        finding = _finding("many_small_tensors", range(64), evidence=evidence)
        result = verify_one(trace, finding, SURE)
    (trial,) = _listed(result, "trials")
    assert (trial["what"], trial["occurrences"]) == ("32 x mul_ [16]", 2)
    assert result["claim_of_ns"] == 70_000_000
    assert _gain(result) > 0.3  # 1 call instead of 32


def test_a_tensor_that_grows_by_cat_is_compared_with_writes_in_place(opened: Any) -> None:
    parts = [
        ("TensorList", [[1, 256, n], [1, 256, 1]], [[256 * n, n, 1], [256, 1, 1]])
        for n in range(500, 509)
    ]
    rows = [
        recorded("cat", [part, scalar("-1")], n * 1_000_000, output_shapes=[[1, 256, 501 + n]])
        for n, part in enumerate(parts)
    ]
    with opened(rows) as trace:
        result = verify_one(trace, _finding("grown_by_cat", range(9)), SURE)
    assert result["why"] is None
    assert [trial["occurrences"] for trial in _listed(result, "trials")] == [3, 3, 3]
    assert _gain(result) > 0.3  # 256 numbers are written instead of 128,000
    assert result["covered"] == 1.0


def test_an_op_without_a_form_for_lists_is_refused(opened: Any) -> None:
    rows = [recorded("softplus", [tensor(16), scalar("1"), scalar("20")], 0)]
    with opened(rows) as trace:
        result = verify_one(trace, _finding("many_small_tensors", [0]), QUICK)
    assert _verdict(result)[1] == "torch has no form of aten::softplus that takes a list of tensors"


def test_odd_sizes_are_compared_with_sizes_rounded_up(opened: Any) -> None:
    half = "c10::BFloat16"
    slots = [tensor(16, 33, dtype=half), tensor(33, 50, dtype=half, strides=[1, 33])]
    with opened([recorded("mm", slots, 0)]) as trace:
        result = verify_one(trace, _finding("misaligned_matmul", [0]), QUICK)
    assert result["why"] is None
    assert result["after"] == "sizes rounded up to 8"
    assert aligned_matmul._padded(_slot(slots[1])) == _slot(
        tensor(40, 56, dtype=half, strides=[1, 40])
    )


def test_a_module_is_replayed_by_its_runs_of_ops(opened: Any) -> None:
    with opened(two_runs()) as trace:
        case = Case(trace, _finding("uncompiled_module", range(7)), torch.device("cpu"))
        plan = registry.planner("uncompiled_module")(case)
    (setup,) = plan.setups
    assert (setup.occurrences, setup.recorded_ns) == (2, 6 * 900_000)


def test_pinned_copies_need_cuda_and_others_say_why_they_cannot(opened: Any) -> None:
    with opened([recorded("tanh", [tensor(5)], 0)]) as trace:
        results = {
            name: verify_one(trace, _finding(name, [0]), QUICK)["why"]
            for name in ("blocking_copies", "input_wait", "an_analyzer_of_mine")
        }
    assert results == {
        "blocking_copies": "pinned memory helps a CUDA device, and this is cpu",
        "input_wait": "the data and its loading are not in the trace",
        "an_analyzer_of_mine": "no experiment replays an_analyzer_of_mine yet",
    }


def test_an_op_that_cannot_be_made_again_is_named(opened: Any) -> None:
    rows = [recorded("_softmax", [tensor(8, 8), ("", [], ""), ("", [], "")], 0, family="softmax")]
    with opened(rows) as trace:
        finding = _finding("low_precision_matmul", [0], evidence={"target": "bf16"})
        result = verify_one(trace, finding, QUICK)
    assert _verdict(result) == (
        "cannot be replayed",
        "aten::_softmax: the trace does not record dim",
    )


def test_a_replay_that_needs_too_much_memory_says_how_much(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "neuron_explorer.analyzers.verify.runner.free_bytes", lambda _: 1_000_000_000
    )
    rows = [recorded("mm", [tensor(16_000, 16_000), tensor(16_000, 8)], 0)]
    with opened(rows) as trace:
        finding = _finding("low_precision_matmul", [0], evidence={"target": "bf16"})
        result = verify_one(trace, finding, QUICK)
    assert _verdict(result)[1] == (
        "it needs about 3.07 GB, and of 1.00 GB free on cpu no more than 50% may be taken"
    )


def test_kinds_of_work_that_the_time_does_not_reach_are_listed(opened: Any) -> None:
    rows = [recorded("mm", [tensor(8, n), tensor(n, 8)], n * 1_000_000) for n in (4, 5)]
    finding = _finding("low_precision_matmul", [0, 1], evidence={"target": "bf16"})
    with opened(rows) as trace:
        result = verify_one(trace, finding, Options(torch.device("cpu"), rounds=5, seconds=0))
    assert result["covered"] == 0.5
    assert [each["why"] for each in _listed(result, "left_out")] == [
        "the time for this finding was over (--seconds)"
    ]


def test_free_memory_of_this_machine_is_known() -> None:
    free = machine.free_bytes(torch.device("cpu"))
    assert free is None or free > 1_000_000


def test_another_device_or_machine_is_told_from_the_same(opened: Any) -> None:
    import platform  # noqa: PLC0415

    cpu = torch.device("cpu")
    rows = [recorded("tanh", [tensor(5)], 0)]
    with opened(rows) as trace:
        assert machine.is_other(trace, "cuda:0", cpu) is True
        assert machine.is_other(trace, None, cpu) is None
        for metadata in trace.metadata.values():
            environment = metadata["environment"]
            environment["hostname"] = platform.node()
            assert machine.is_other(trace, "cpu", cpu) is False
            environment["hostname"] = "elsewhere"
            assert machine.is_other(trace, "cpu", cpu) is True
