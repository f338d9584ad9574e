"""Modelled times of real dry runs, through the command line, against numbers worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dryrun_scripts import run_cli as cli

from builders import kernel, launch, op, row, step, write_trace
from neuron_explorer.analyzers import run
from neuron_explorer.trace import Trace

LAUNCH_NS = 73_000
"""Of a program, in trn2.toml."""
LATENCY_NS = 20_000
BYTES_PER_NS = 580
"""0.8 of 725 GB/s."""

PLANTED = """
import torch


def main():
    device = torch.device("neuron")
    weight = torch.empty(4096, 4096, device=device)
    for size in (4, 4, 6):
        x = torch.ones(size, 8).to(device)  # line: copy
        y = x.mul(2.0)  # line: mul
        z = y.sort(dim=-1).values  # line: sort
        z.sum()  # line: sum
        weight.relu()  # line: relu
        torch.neuron.synchronize()  # line: wait


main()
"""

COMPILED = """
import torch

net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
net = net.to("neuron").eval()
fast = torch.compile(net, backend="neuron", dynamic=False)
x = torch.ones(8, 64, device="neuron")
with torch.no_grad():
    net(x)
    fast(x)
    fast(x)
"""


def line_of(mark: str) -> int:
    lines = PLANTED.splitlines()
    return next(n for n, text in enumerate(lines, 1) if text.endswith(f"# line: {mark}"))


def dry_run(folder: Path, script: str, *options: str) -> Path:
    pytest.importorskip("torch")
    (folder / "script.py").write_text(script, encoding="utf-8")
    done = cli("run", "--dryrun", "trn2", *options, "script.py", folder=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "trace.parquet"


@pytest.fixture(scope="module", params=[True, False], ids=["executed", "shapes only"])
def planted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trace]:
    folder = tmp_path_factory.mktemp("planted")
    options = () if request.param else ("--no-execute",)
    with Trace.open([dry_run(folder, PLANTED, *options)]) as trace:
        yield trace


def rows(trace: Trace, query: str) -> list[dict[str, Any]]:
    return list(trace.sql(query).to_pylist())


@pytest.mark.torch
def test_each_program_has_the_time_that_its_floors_give(planted: Trace) -> None:
    found = rows(planted, "SELECT * FROM modelled_work WHERE kind = 'kernel' ORDER BY event_id")
    assert [r["name"].removeprefix("aten::") for r in found] == ["mul", "sum", "relu"] * 3
    assert {r["source_line"] for r in found} == {line_of("mul"), line_of("sum"), line_of("relu")}
    assert {(r["device"], r["queue"], r["queue_kind"]) for r in found} == {
        ("neuron:0 (trn2, dry run)", "compute 0", "compute")
    }
    for r in found:
        floor = max(r["memory_floor_ns"], r["compute_floor_ns"])
        assert r["modelled_duration_ns"] == r["launch_cost_ns"] + floor
        assert r["modelled_end_ns"] == r["modelled_start_ns"] + r["modelled_duration_ns"]
        assert r["op_name"] == r["name"]
        assert r["compiled"] is False
    mul, relu = found[0], found[2]
    # 4 x 8 floats in and out: 256 bytes, which is no time
    assert (mul["bytes"], mul["memory_floor_ns"], mul["bound"]) == (256, 0, "launch")
    # 4096 x 4096 floats in and out: 2 * 64 MiB
    assert relu["bytes"] == 2 * 4096 * 4096 * 4
    assert relu["memory_floor_ns"] == round(relu["bytes"] / BYTES_PER_NS) == 231_410
    # one FLOP an element on a vector engine of 2 TFLOP/s
    assert relu["compute_floor_ns"] == round(4096 * 4096 / 2_000) == 8_389
    assert (relu["bound"], relu["modelled_duration_ns"]) == ("memory", LAUNCH_NS + 231_410)


@pytest.mark.torch
def test_copies_cross_the_link(planted: Trace) -> None:
    found = rows(planted, "SELECT * FROM modelled_work WHERE kind = 'memcpy' ORDER BY event_id")
    # x in; y out to the sort, values and indices back in
    assert [r["name"].removeprefix("copy ") for r in found[:4]] == [
        "host to device",
        "device to host",
        "host to device",
        "host to device",
    ]
    assert len(found) == 3 * 4
    # 128 bytes at 16 GB/s are 8 ns
    assert {(r["bound"], r["launch_cost_ns"], r["link_ns"]) for r in found[:8]} == {
        ("link", LATENCY_NS, 8)
    }


@pytest.mark.torch
def test_the_capture_is_one_row_where_no_step_is_marked(planted: Trace) -> None:
    (found,) = rows(planted, "SELECT * FROM modelled_steps")
    counted = {name: found[name] for name in ("step", "submissions", "eager_programs", "copies")}
    assert counted == {"step": None, "submissions": 9, "eager_programs": 9, "copies": 12}
    assert (found["fallbacks"], found["recompilations"], found["compilations"]) == (3, 2, 5)
    # a blocking copy in, and the three copies of a fallback; one call to wait
    assert found["syncs"] == 3 * (4 + 1)
    assert found["memory_bound_ns"] == 3 * (LAUNCH_NS + 231_410)
    assert found["launch_bound_ns"] == pytest.approx(6 * LAUNCH_NS, abs=6)
    assert found["compute_bound_ns"] == 0
    assert found["launch_cost_ns"] == 9 * LAUNCH_NS
    assert found["program_ns"] == found["launch_bound_ns"] + found["memory_bound_ns"]
    assert found["work_ns"] == found["program_ns"] + found["link_ns"]
    assert found["host_wait_ns"] > 3 * (LAUNCH_NS + 231_410)
    assert found["span_ns"] >= found["host_wait_ns"]


@pytest.mark.torch
def test_what_was_planted_is_found_at_its_line(planted: Trace) -> None:
    report = run(planted)
    found = {(f.analyzer, f.source_line): f for f in report.findings}
    sort = found["cpu_fallbacks", line_of("sort")]
    # 4 x 8 floats out, the same and 64-bit indices (kept in 32 bits) in
    assert (sort.evidence["count"], sort.evidence["copied_bytes"]) == (3, 3 * (2 * 4 + 6) // 3 * 96)
    for mark in ("mul", "sum"):
        again = found["recompilations", line_of(mark)]
        assert again.evidence["recompilations"] == 1
        assert "4x8 float32 -> 6x8 float32" in again.message
    assert found["modelled_waits", line_of("wait")].evidence["waits"] == 3
    not_modelled = {f.analyzer for f in report.findings if f.figures != "modelled"}
    assert not_modelled <= {"trace_health"}
    (summary,) = (f for f in report.findings if f.analyzer == "dry_run_summary")
    assert summary.evidence["submissions"] == 9
    for said in (
        "On trn2, eager: 9 NEFF submissions in all, modelled ",
        f", 3 CPU fallbacks at script.py:{line_of('sort')}, ",
        f"2 recompilations from changing batch size at script.py:{line_of('mul')} (1), ",
        f"script.py:{line_of('sum')} (1); the eager programs compiled, estimated: ",
        " launches go and up to ",
    ):
        assert said in summary.message
    assert report.trusted


@pytest.mark.torch
def test_no_measured_duration_is_judged_by_a_chip(planted: Trace) -> None:
    with Trace.open([Path(p) for p in planted.files], device="trn2-core") as as_chip:
        chips = rows(as_chip, "SELECT DISTINCT chip FROM device_chips WHERE device <> 'cpu'")
        assert [r["chip"] for r in chips] in ([None], [])
        assert rows(as_chip, "SELECT * FROM roofline WHERE peak_bytes_per_s IS NOT NULL") == []
        skipped = dict(run(as_chip).not_applicable)
    for name in ("device_idle", "host_syncs", "launch_overhead", "compile_opportunities"):
        assert "those of this machine" in skipped[name]
    measured = rows(
        planted,
        "SELECT count(*) AS n FROM work INNER JOIN modelled_work USING (rank, event_id)"
        " WHERE duration_ns = modelled_duration_ns OR start_ns = modelled_start_ns",
    )
    assert measured == [{"n": 0}]


@pytest.mark.torch
def test_measured_views_bear_events_without_a_duration(planted: Trace) -> None:
    executed = rows(planted, "SELECT count(duration_ns) AS n FROM events WHERE layer = 'hardware'")
    for view in ("work", "queue_ops"):
        assert bool(rows(planted, f"SELECT * FROM {view}")) == (executed[0]["n"] > 0)
    for view in ("queues", "steps", "roofline", "chains", "devices", "gaps", "launches", "kernels"):
        rows(planted, f"SELECT * FROM {view}")
    lost = rows(planted, "SELECT status FROM health WHERE check_name = 'device_time_lost'")
    assert lost == [{"status": "ok"}]


@pytest.mark.torch
def test_a_graph_is_one_program_within_what_its_eager_form_promised(tmp_path: Path) -> None:
    with Trace.open([dry_run(tmp_path, COMPILED)]) as trace:
        (found,) = rows(trace, "SELECT * FROM modelled_steps")
        graphs = rows(trace, "SELECT * FROM modelled_work WHERE compiled ORDER BY event_id")
        report = run(trace, only=["compile_gain", "dry_run_summary"])
    assert (found["compiled_programs"], found["graphs"]) == (2, 1)
    first, second = graphs
    assert first["graph_id"] is not None
    # x, two weights, two biases in; one result out
    assert first["bytes"] == 4 * (8 * 64 + 2 * 64 * 64 + 2 * 64 + 8 * 64)
    assert first["flops"] >= 2 * 2 * 8 * 64 * 64
    assert second["modelled_duration_ns"] == first["modelled_duration_ns"]
    (summary,) = (f for f in report.findings if f.analyzer == "dry_run_summary")
    assert (summary.evidence["graphs"], summary.evidence["graph_submissions"]) == (1, 2)
    assert summary.evidence["compiled_ns"] == 2 * first["modelled_duration_ns"]
    assert "; compiled: 1 graph in 2 submissions in all, modelled " in summary.message
    gain: Any
    (gain,) = (f.evidence for f in report.findings if f.evidence.get("phase") == "forward")
    assert gain["programs"] == 3
    assert (gain["graphs"], gain["saved_launches"]) == (1, 2)
    assert gain["saved_launch_ns"] == 2 * LAUNCH_NS
    assert gain["one_low_ns"] - 2 <= first["modelled_duration_ns"] <= gain["one_high_ns"] + 2


@pytest.mark.torch
def test_the_reports_say_modelled_and_name_the_device(tmp_path: Path) -> None:
    dry_run(tmp_path, PLANTED, "--no-execute")
    text = cli("analyze", "trace.parquet", folder=tmp_path)
    assert text.returncode == 0, text.stderr
    assert "neuron:0 (trn2, dry run)  shapes only" in text.stdout
    assert "modelled  9 programs, " in text.stdout
    assert "(modelled)" in text.stdout
    markdown = cli("analyze", "trace.parquet", "--format", "md", folder=tmp_path).stdout
    assert "modelled: 9 programs, " in markdown
    found = json.loads(cli("analyze", "trace.parquet", "--json", folder=tmp_path).stdout)
    assert found["modelled"]["submissions"] == 9
    info = cli("info", "trace.parquet", folder=tmp_path).stdout
    assert "modelled from" in info
    assert "one user's measurement on Trn2" in info


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--dryrun", "trn9"), "no dry run of 'trn9' is known"),
        (("--no-execute",), "--no-execute belongs to a dry run"),
    ],
)
def test_a_wrong_dry_run_is_one_clear_line(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "script.py").write_text("print('ran')", encoding="utf-8")
    done = cli("run", *arguments, "script.py", folder=tmp_path)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "ran" not in done.stdout
    assert len(done.stderr.strip().splitlines()) == 2


def modelled_row(start: int, duration: int, bound: str, **columns: Any) -> Any:
    given = {"modelled_bound": bound, "modelled_launch_ns": 10, "modelled_bytes": 100}
    usual = {"device": "neuron:0 (trn2, dry run)", "attributes": given}
    return kernel(
        start,
        5,
        modelled_start_ns=start * 100,
        modelled_duration_ns=duration,
        **(usual | columns),
    )


def test_steps_add_up_what_belongs_to_each(tmp_path: Path) -> None:
    path = write_trace(
        tmp_path / "trace.parquet",
        [
            step(1, 0, 50),
            step(2, 50, 50),
            modelled_row(1, 30, "launch", step=1),
            modelled_row(2, 70, "memory", step=1),
            modelled_row(60, 50, "compute", step=2, graph_id="0/0"),
            modelled_row(70, 20, "link", step=2, kind="memcpy"),
            launch(10, 2, kind="sync", step=1, modelled_start_ns=0, modelled_duration_ns=40),
            launch(12, 2, kind="sync", step=1, modelled_start_ns=40, modelled_duration_ns=0),
            row("host", "slice", 20, 5, name="aten::sort executed via CPU fallback", step=2),
            row("compiler", "compile", 21, 1, step=1, attributes={"program": "4x8"}),
            row("compiler", "recompile", 61, 1, step=2, attributes={"program": "6x8"}),
            row("compiler", "compile", 65, 1, step=2, name="forward"),
            # measured only: no work of the model
            kernel(80, 9, step=2),
            op(0, 1),
        ],
    )
    with Trace.open([path]) as trace:
        one, two = rows(trace, "SELECT * FROM modelled_steps")
    assert (one["submissions"], one["eager_programs"], one["span_ns"]) == (2, 2, 170)
    assert (one["launch_bound_ns"], one["memory_bound_ns"], one["work_ns"]) == (30, 70, 100)
    assert (one["host_wait_ns"], one["syncs"], one["fallbacks"]) == (40, 2, 0)
    assert (one["compilations"], one["recompilations"]) == (1, 0)
    assert (two["compiled_programs"], two["graphs"], two["copies"]) == (1, 1, 1)
    assert (two["compute_bound_ns"], two["link_ns"], two["work_ns"]) == (50, 20, 70)
    assert (two["fallbacks"], two["compilations"], two["recompilations"]) == (1, 1, 1)
    assert two["host_wait_ns"] is None


def test_collectives_that_no_program_hides(tmp_path: Path) -> None:
    def talk(start: int, duration: int, number: int, queue: str = "collective 0") -> Any:
        return modelled_row(
            start, duration, "link", step=number, kind="collective", queue=queue, name="c10d::x"
        )

    path = write_trace(
        tmp_path / "trace.parquet",
        [
            step(1, 0, 50),
            step(2, 50, 50),
            modelled_row(0, 100, "memory", step=1),  # 0 to 100
            modelled_row(2, 20, "memory", step=1),  # 200 to 220
            talk(0, 150, 1),  # 50 of it alone
            talk(1, 30, 1, "collective 1"),  # 100 to 130, beside the other one
            talk(60, 70, 2),  # 6000 to 6070: half of it alone
            modelled_row(60, 35, "compute", step=2),
        ],
    )
    with Trace.open([path]) as trace:
        one, two = rows(trace, "SELECT * FROM modelled_steps")
    assert (one["collectives"], one["collective_ns"], one["exposed_collective_ns"]) == (2, 180, 50)
    assert (two["collectives"], two["collective_ns"], two["exposed_collective_ns"]) == (1, 70, 35)


def test_a_gain_is_told_for_the_items_of_a_list(tmp_path: Path) -> None:
    def ran(start: int, module: str, read: int, write: int) -> Any:
        return modelled_row(
            start,
            110,
            "memory",
            phase="forward",
            module=module,
            module_class="Linear",
            attributes={
                "modelled_bound": "memory",
                "modelled_launch_ns": 10,
                "modelled_memory_ns": 100,
                "modelled_compute_ns": 1,
                "modelled_bytes": 200,
                "reads": [[read, 100]],
                "writes": [[write, 100]],
            },
        )

    path = write_trace(
        tmp_path / "trace.parquet",
        [
            ran(0, "Net.layers.0.up", 1, 2),
            ran(2, "Net.layers.0.down", 2, 3),
            ran(4, "Net.layers.1.up", 3, 4),
            ran(6, "Net.layers.1.down", 4, 5),
            ran(8, "Net.head", 5, 6),
        ],
    )
    with Trace.open([path]) as trace:
        found = rows(trace, "SELECT * FROM modelled_gains WHERE scope = 'module'")
        (whole,) = rows(trace, "SELECT * FROM modelled_gains WHERE scope = 'phase'")
    layers = found[0]
    assert (layers["module"], layers["instances"], layers["programs"]) == ("Net.layers.*", 2, 4)
    # each layer: one input from outside, one result used outside; its own middle stays inside
    assert (layers["bytes"], layers["outside_bytes"], layers["graphs"]) == (800, 400, 2)
    assert layers["eager_ns"] == 440
    assert layers["one_low_ns"] == 2 * (10 + 100)
    assert layers["one_high_ns"] == 2 * (10 + 200)
    assert {row["module"] for row in found} == {"Net.layers.*", "Net.head"}
    # the whole: only its first input comes from outside, and nobody reads its result
    assert (whole["programs"], whole["graphs"], whole["outside_bytes"]) == (5, 1, 100)


def test_a_trace_without_modelled_times_has_no_modelled_row(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "trace.parquet", [op(0, 10), kernel(1, 2, op_id=0)])
    with Trace.open([path]) as trace:
        assert rows(trace, "SELECT * FROM modelled_work") == []
        assert rows(trace, "SELECT * FROM modelled_steps") == []
        skipped = dict(run(trace).not_applicable)
    assert "--dryrun trn2" in skipped["dry_run_summary"]
