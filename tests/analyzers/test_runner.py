"""Which analyzers run, what is said of those that cannot, and in which order findings come."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builders import Row, kernel, launch, op, row, step, write_trace
from neuron_explorer.analyzers import analyzers, parse, query, run, runner
from neuron_explorer.analyzers.needs import NEEDS
from neuron_explorer.analyzers.rows import Facts, finding_id, to_finding
from neuron_explorer.analyzers.runner import rank_findings
from neuron_explorer.analyzers.sources import SourceTexts
from neuron_explorer.errors import AnalyzerError
from neuron_explorer.findings import Finding
from neuron_explorer.trace import Trace

OpenTrace = Callable[..., Trace]

SHAPE = [[4096, 8192]]
BYTES = 4096 * 8192 * 2


def eager(name: str, start_ns: int, first_id: int, **columns: object) -> list[Row]:
    """An elementwise op on 67 MB, its launch and its kernel of 50 us."""
    shared = {"source_file": "/m.py", "source_line": 7, "source_function": "f"} | columns
    cost = {"read_bytes": BYTES, "write_bytes": BYTES, "family": "elementwise"}
    shapes = {"input_shapes": SHAPE, "input_dtypes": ["c10::BFloat16"], "output_shapes": SHAPE}
    links = {"launch_id": first_id + 1, "op_id": first_id}
    return [
        op(start_ns, 8_000, name=name, **shapes, **cost, **shared),
        launch(start_ns + 2_000, 4_000, op_id=first_id, parent_id=first_id, **shared),
        kernel(start_ns + 6_000, 50_000, **links, **cost, **shared),
    ]


def chain_at(start_ns: int, **columns: object) -> list[Row]:
    return eager("aten::mul", start_ns, 0, **columns) + eager(
        "aten::silu", start_ns + 50_000, 3, **columns
    )


def test_an_unknown_analyzer_is_refused_with_those_that_exist(open_trace: OpenTrace) -> None:
    with pytest.raises(AnalyzerError, match="no analyzer 'nope'") as caught:
        run(open_trace([]), only=["nope"])
    assert "trace_health" in caught.value.hint


def test_an_unknown_threshold_is_refused_with_those_that_exist(open_trace: OpenTrace) -> None:
    with pytest.raises(AnalyzerError, match=r"threshold 'device_idle\.min_shape'") as caught:
        run(open_trace([]), params={"device_idle.min_shape": 1})
    assert "device_idle.min_idle_share" in caught.value.hint


def test_of_a_known_analyzer_only_its_own_thresholds_are_named(open_trace: OpenTrace) -> None:
    with pytest.raises(AnalyzerError, match="no analyzer has a threshold") as caught:
        run(open_trace([]), params={"input_wait.nope": 1})
    named = str(caught.value.hint).removeprefix("There are: ").rstrip(".").split(", ")
    assert {each.partition(".")[0] for each in named} == {"input_wait"}


def test_a_threshold_with_its_analyzer_wins_over_a_bare_one(open_trace: OpenTrace) -> None:
    report = run(open_trace([]), params={"host_syncs.min_share": 0.5, "min_share": 0.25})
    assert report.params["host_syncs"]["min_share"] == 0.5
    assert report.params["hbm_bound_eager_ops"]["min_share"] == 0.25
    assert report.params["device_idle"]["min_gap_ns"] == 2_000


def test_a_threshold_decides(open_trace: OpenTrace) -> None:
    trace = open_trace(chain_at(0))
    only = ["compile_opportunities"]
    assert len(run(trace, only).findings) == 1
    assert run(trace, only, {"min_share": 1.1}).findings == []


def test_without_device_events_nothing_passes_silently(open_trace: OpenTrace) -> None:
    report = run(open_trace([op(0, 10), step(0, 0, 10)]))
    reasons = dict(report.not_applicable)
    assert reasons["device_idle"].startswith("no device events in this trace (capture with")
    assert reasons["compile_opportunities"] == NEEDS["shapes"].reason
    assert reasons["launch_overhead"] == NEEDS["hardware"].reason
    needing_ops_alone = ["python_overhead", "single_tensor_optimizer", "zero_grad_fills"]
    assert report.ran == sorted([*needing_ops_alone, "host_syncs", "trace_health"])


def test_without_runtime_events_syncs_are_not_judged(open_trace: OpenTrace) -> None:
    report = run(open_trace([kernel(0, 10)]), only=["host_syncs"])
    assert report.not_applicable == [("host_syncs", NEEDS["runtime"].reason)]


@pytest.mark.parametrize("need", sorted(NEEDS))
def test_no_need_is_met_by_an_empty_trace(need: str, open_trace: OpenTrace) -> None:
    assert open_trace([]).sql(NEEDS[need].check).num_rows == 0


def test_the_needs_of_a_full_trace_are_met(open_trace: OpenTrace) -> None:
    rows = [
        *chain_at(0),
        step(0, 0, 200_000),
        row("python", "frame", 0, 10, name="m.py(7): f"),
        row("memory", "alloc", 0, None, alloc_bytes=1),
        row("compiler", "compile", 0, 10, graph_id="0/0"),
        row("host", "input_wait", 0, 10),
        row("host", "gc", 0, 10),
        op(300_000, 10, input_strides=[[1]], module="layers.0"),
        kernel(300_000, 10, kind="collective", name="ncclKernel_AllReduce"),
        kernel(300_000, 10, device="neuron:0", modelled_start_ns=0, modelled_duration_ns=5),
        *(step(number, number * 200_000, 200_000) for number in range(1, 4)),
        kernel(300_000, 10, queue="stream 20", recomputed=True),
        kernel(300_000, 10, kind="memcpy", name="Memcpy HtoD (Pinned -> Device)"),
        kernel(300_000, 10, kind="dma", device="neuron:0", queue="dma 0"),
        {
            **row("memory", "alloc", 0, None, device_allocated=1, device_reserved=1),
            "attributes": {"Addr": 1},
        },
        row("framework", "annotation", 0, 10, name="DataParallel.forward"),
    ]
    trace = open_trace(rows)
    assert [name for name, need in NEEDS.items() if not trace.sql(need.check).num_rows] == []


def test_ids_outlive_times_and_event_ids(open_trace: OpenTrace) -> None:
    first = {finding.id for finding in run(open_trace(chain_at(0))).findings}
    late = {finding.id for finding in run(open_trace(chain_at(10**12))).findings}
    moved = {f.id for f in run(open_trace(chain_at(0, source_line=8))).findings}
    assert first
    assert first == late
    assert not first & moved


def test_the_same_trace_gives_the_same_report(open_trace: OpenTrace) -> None:
    trace = open_trace(chain_at(0))
    assert run(trace) == run(trace)


def test_device_time_is_shared_over_the_busy_time_of_the_devices(open_trace: OpenTrace) -> None:
    rows = [*chain_at(0), kernel(1_000_000, 300_000, name="gemm")]
    (finding,) = run(open_trace(rows), only=["compile_opportunities"]).findings
    assert finding.device_time_ns == 100_000
    assert finding.share == 0.25


def test_the_source_line_comes_from_the_trace(open_trace: OpenTrace) -> None:
    sources = {"/m.py": {"sha256": "0" * 64, "lines": {"7": "    y = silu(x * 2)"}}}
    trace = open_trace(chain_at(0), {"sources": sources})
    (finding,) = run(trace, only=["compile_opportunities"]).findings
    assert finding.source_text == "y = silu(x * 2)"


def test_the_source_line_comes_from_disk_only_while_the_file_is_the_same(
    tmp_path: Path, open_trace: OpenTrace
) -> None:
    file = tmp_path / "model.py"
    file.write_text("a = 1\nb = 2\n", encoding="utf-8")
    same = hashlib.sha256(file.read_bytes()).hexdigest()
    for sha256, text in ((same, "b = 2"), ("0" * 64, None), (None, None)):
        trace = open_trace([], {"sources": {str(file): {"sha256": sha256, "lines": {}}}})
        assert SourceTexts(trace).line(str(file), 2) == text
        assert SourceTexts(trace).line(str(file), 3) is None
        assert SourceTexts(trace).line("/elsewhere.py", 2) is None


def finding(analyzer: str, id_: str, **fields: object) -> Finding:
    made = Finding(id_, analyzer, "info", title="", message="", advice="")
    return replace(made, **fields)  # type: ignore[arg-type]


def test_findings_rank_by_trust_then_saving_then_device_time() -> None:
    wanted = [
        finding("trace_health", "cut", severity="critical"),
        finding("device_idle", "most", saving_high_ns=9),
        finding("device_idle", "long", saving_high_ns=5, device_time_ns=7),
        finding("host_syncs", "short", saving_high_ns=5, device_time_ns=2),
        finding("hbm_bound_eager_ops", "unknown", device_time_ns=99),
        finding("device_idle", "a"),
        finding("device_idle", "b"),
        finding("trace_health", "no stacks", severity="warning"),
    ]
    assert rank_findings(reversed(wanted)) == wanted
    assert rank_findings(wanted[3:] + wanted[:3]) == wanted


def test_a_bad_trace_is_not_trusted(open_trace: OpenTrace) -> None:
    cut = {"origin": {"tool": "kineto", "file": "a.json", "truncated": True}}
    report = run(open_trace(chain_at(0), cut))
    assert report.findings[0].severity == "critical"
    assert not report.trusted
    assert run(open_trace(chain_at(0))).trusted


HEADER = """-- +++
-- title = "t"
-- question = "q"
-- severity = "info"
-- needs = []
-- message = "{name:ns}"
-- advice = "a"
-- key = ["name"]
-- proof = "SELECT 1"
-- reference = "https://example.org"
-- [columns]
-- name = "Name."
-- +++
-- Prose.
"""


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("SELECT nothing AS name FROM work", "analyzer mine failed: .*nothing"),
        ("SELECT 1 AS name, 2 AS other", r"gives the columns \['name', 'other'\]"),
        ("SELECT $missing AS name", "analyzer mine failed"),
    ],
)
def test_a_wrong_query_names_its_analyzer(select: str, said: str, open_trace: OpenTrace) -> None:
    with pytest.raises(AnalyzerError, match=said):
        query(open_trace([]), parse("mine.sql", HEADER + select))


def test_an_interrupted_run_ends_the_queries_of_its_threads(
    open_trace: OpenTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, ended = open_trace([]), []

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "query", interrupted)
    monkeypatch.setattr(trace, "end_queries", lambda: ended.append(True))
    with pytest.raises(KeyboardInterrupt):
        run(trace)
    assert ended == [True]


def test_a_text_that_does_not_fit_names_its_analyzer(open_trace: OpenTrace) -> None:
    mine = parse("mine.sql", HEADER + "SELECT 'x' AS name")
    with pytest.raises(AnalyzerError, match="analyzer mine has a text that does not fit"):
        to_finding(mine, {"name": "x"}, Facts(SourceTexts(open_trace([])), {}))


def test_an_id_is_the_analyzer_and_a_hash_of_its_key() -> None:
    mine = parse("mine.sql", HEADER + "SELECT 'x' AS name")
    assert finding_id(mine, {"name": "x"}) == finding_id(mine, {"name": "x", "t": 1})
    assert finding_id(mine, {"name": "x"}) != finding_id(mine, {"name": "y"})
    assert finding_id(mine, {"name": "x"}).startswith("mine-")


def test_ranks_are_judged_one_by_one(tmp_path: Path) -> None:
    paths = []
    for rank in (0, 1):
        rows = [dict(each) | {"rank": rank} for each in chain_at(0)]
        metadata = {"summary": {"rank": rank}}
        paths.append(write_trace(tmp_path / f"rank={rank}.parquet", rows, metadata))
    with Trace.open(paths) as trace:
        findings = run(trace, only=["compile_opportunities"]).findings
    assert sorted(f.rank or 0 for f in findings) == [0, 1]
    assert len({f.id for f in findings}) == 2
    assert {f.saving_high_ns for f in findings} == {50_000}


def test_every_analyzer_is_in_the_table_of_the_readme() -> None:
    readme = Path(__file__).parents[2] / "analyzers" / "README.md"
    for id_ in analyzers():
        assert f"`{id_}`" in readme.read_text(encoding="utf-8")
