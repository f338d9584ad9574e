"""csv, speedscope, sarif and otlp-json."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders import kernel, launch, op, write_trace
from neuron_explorer.analyzers import run
from neuron_explorer.errors import UsageError
from neuron_explorer.exports.csv_rows import write_csv
from neuron_explorer.exports.otlp import write_otlp
from neuron_explorer.exports.sarif import write_sarif
from neuron_explorer.exports.sink import open_sink
from neuron_explorer.exports.speedscope import write_speedscope
from neuron_explorer.exports.window import Window, part_of
from neuron_explorer.findings import Finding
from neuron_explorer.loading import load
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.overview import overview
from neuron_explorer.trace import Trace

SCHEMAS = Path(__file__).parent / "schemas"
HEX = frozenset("0123456789abcdef")


def valid(content: object, schema: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    wanted = json.loads((SCHEMAS / schema).read_text())
    jsonschema.validators.validator_for(wanted)(wanted).validate(content)


def written(trace: Trace, path: Path, writer: Callable[..., object], *more: object) -> str:
    with open_sink(path) as out:
        writer(trace, part_of(trace, Window()), out, *more)
    return path.read_text("utf-8")


def sarif(trace: Trace, path: Path, root: Path, findings: list[Finding] | None = None) -> Any:
    report = run(trace, only=["layout_copies"] if findings is not None else None)
    if findings is not None:
        report.findings[:] = findings
    judgement = Judgement(overview(trace, ["t.parquet"]), report)
    with open_sink(path) as out:
        write_sarif(trace, judgement, out, root)
    content = json.loads(path.read_text("utf-8"))
    valid(content, "sarif.json")
    return content["runs"][0]


# ---- csv -------------------------------------------------------------------


def test_csv_has_a_line_a_row_and_every_column(tmp_path: Path) -> None:
    rows = [op(0, 5, name='a,"b"\n核'), op(10, 5, sources=["m.py:1", "m.py:2"])]
    with load(write_trace(tmp_path / "t.parquet", rows)) as trace:
        found = list(csv.DictReader(io.StringIO(written(trace, tmp_path / "t.csv", write_csv))))
    assert [row["name"] for row in found] == ['a,"b"\n核', "aten::op"]
    assert found[1]["sources"] == '["m.py:1","m.py:2"]'
    assert found[0]["flops"] == ""


def test_csv_of_a_view_and_of_an_empty_one(tmp_path: Path) -> None:
    with load(write_trace(tmp_path / "t.parquet", [kernel(0, 5), kernel(9, 5)])) as trace:
        lines = written(trace, tmp_path / "k.csv", write_csv, "kernels").splitlines()
        assert lines[1].startswith("0,cuda:0,kernel,,2,10,5,5")
        assert written(trace, tmp_path / "s.csv", write_csv, "steps").count("\n") == 1
        with pytest.raises(UsageError, match="no view nothing"):
            written(trace, tmp_path / "n.csv", write_csv, "nothing")


def test_csv_of_a_window_asks_only_of_views_that_know_their_events(tmp_path: Path) -> None:
    with load(write_trace(tmp_path / "t.parquet", [kernel(0, 5), kernel(90, 5)])) as trace:
        late = part_of(trace, Window(from_ns=50))
        with open_sink(tmp_path / "w.csv") as out:
            assert write_csv(trace, late, out, "work")["rows"] == 1
            with pytest.raises(UsageError, match="rows of kernels are no events"):
                write_csv(trace, late, out, "kernels")


# ---- speedscope --------------------------------------------------------------


def test_speedscope_sums_to_the_time_of_the_device(shared: Callable[[str], Path]) -> None:
    with load(shared("h100-bert-small")) as trace:
        content = json.loads(_speedscope(trace, shared("h100-bert-small").with_suffix(".ss")))
        (work,) = trace.sql("SELECT sum(duration_ns) AS ns FROM work").to_pylist()
    valid(content, "speedscope.json")
    device = content["profiles"][0]
    assert device["name"] == "cuda:0: device time"
    assert sum(device["weights"]) == device["endValue"] == work["ns"]


def test_speedscope_stacks_lead_from_source_to_op_to_kernel(tmp_path: Path) -> None:
    place = {"source_file": "m.py", "source_line": 7, "source_function": "f", "stack": STACK}
    rows = [op(0, 9, name="aten::mm", **place), kernel(20, 5, op_id=0, name="gemm", **place)]
    with load(write_trace(tmp_path / "t.parquet", rows)) as trace:
        content = json.loads(_speedscope(trace, tmp_path / "t.ss"))
    valid(content, "speedscope.json")
    frames = content["shared"]["frames"]
    stack = [frames[number] for number in content["profiles"][0]["samples"][0]]
    assert stack == [
        {"name": "main", "file": "train.py", "line": 3},
        {"name": "f", "file": "m.py", "line": 7},
        {"name": "aten::mm"},
        {"name": "gemm"},
    ]


def test_speedscope_of_nothing_is_still_a_file_of_it(tmp_path: Path) -> None:
    with load(write_trace(tmp_path / "t.parquet", [])) as trace:
        content = json.loads(_speedscope(trace, tmp_path / "t.ss"))
    valid(content, "speedscope.json")
    assert content["profiles"] == []


STACK = "train.py(3): main\nm.py(7): f"


def _speedscope(trace: Trace, path: Path) -> str:
    return written(trace, path, write_speedscope)


# ---- sarif -------------------------------------------------------------------


def finding(**columns: Any) -> Finding:
    told: dict[str, Any] = {
        "id": "layout_copies-1",
        "analyzer": "layout_copies",
        "severity": "warning",
        "title": "Copies: contiguous",
        "message": "36 copies.",
        "advice": "Pass the view on.",
        "source_file": "pkg/model.py",
        "source_line": 7,
        "source_text": "y = x.contiguous()",
    }
    return Finding(**(told | columns))


def test_a_finding_is_an_alert_on_its_line(tmp_path: Path) -> None:
    inside, outside = tmp_path / "pkg" / "a b.py", Path("/opt/other/核.py")
    findings = [
        finding(source_file=str(inside)),
        finding(source_file=str(outside), severity="critical"),
        finding(source_file=None, source_line=None, severity="info"),
    ]
    with load(write_trace(tmp_path / "t.parquet", [op(0, 5)])) as trace:
        found = sarif(trace, tmp_path / "t.sarif", tmp_path, findings)
    assert [result["level"] for result in found["results"]] == ["warning", "error", "note"]
    places = [result["locations"][0]["physicalLocation"] for result in found["results"]]
    assert places[0] == {
        "artifactLocation": {"uri": "pkg/a%20b.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7, "snippet": {"text": "y = x.contiguous()"}},
    }
    assert places[1]["artifactLocation"]["uri"].startswith("file:///opt/other/%E6")
    assert places[2]["artifactLocation"]["uri"] == "t.parquet"
    (rule,) = found["tool"]["driver"]["rules"]
    assert (rule["id"], rule["helpUri"].startswith("https://")) == ("layout_copies", True)


def test_fingerprints_survive_moved_lines_and_tell_findings_apart(tmp_path: Path) -> None:
    def marks(findings: list[Finding]) -> list[str]:
        with load(write_trace(tmp_path / "t.parquet", [op(0, 5)])) as trace:
            found = sarif(trace, tmp_path / "t.sarif", tmp_path, findings)
        return [next(iter(r["partialFingerprints"].values())) for r in found["results"]]

    before = marks([finding(), finding(source_text="z = y.t()"), finding()])
    moved = [finding(source_line=90), finding(source_line=91, source_text="z = y.t()")]
    assert marks([*moved, finding(source_line=99, message="37 copies.")]) == before
    assert len(set(before)) == 3


def test_findings_of_a_real_trace_are_valid_sarif(shared: Callable[[str], Path]) -> None:
    path = shared("h100-bert-small")
    with load(path) as trace:
        found = sarif(trace, path.with_suffix(".sarif"), path.parent)
    assert len(found["results"]) > 3
    ids = {rule["id"] for rule in found["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in found["results"]} == ids


# ---- otlp-json ----------------------------------------------------------------


def test_spans_have_parents_links_and_places(tmp_path: Path) -> None:
    rows = [
        op(1_768_554_939_862_757_064, 50, name="aten::mm", source_file="m.py", source_line=3),
        launch(1_768_554_939_862_757_070, 5, parent_id=0, op_id=0),
        kernel(1_768_554_939_862_757_100, 20, launch_id=1, op_id=0, name="gemm"),
        op(1_768_554_939_862_757_200, 50, name="MmBackward0", forward_id=0),
    ]
    with load(write_trace(tmp_path / "t.parquet", rows)) as trace:
        content = json.loads(written(trace, tmp_path / "t.json", write_otlp))
    valid(content, "otlp.json")
    spans = {
        span["name"]: span
        for resource in content["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    }
    forward, kernel_ = spans["aten::mm"], spans["gemm"]
    assert forward["startTimeUnixNano"] == "1768554939862757064"
    assert kernel_["parentSpanId"] == spans["cudaLaunchKernel"]["spanId"]
    assert spans["cudaLaunchKernel"]["parentSpanId"] == forward["spanId"]
    assert spans["MmBackward0"]["links"][0]["spanId"] == forward["spanId"]
    assert {"key": "code.line.number", "value": {"intValue": "3"}} in forward["attributes"]
    ids = [span["spanId"] for span in spans.values()]
    assert len(set(ids)) == 4
    assert all(len(number) == 16 and set(number) <= HEX for number in ids)
    devices = [_value(r, "neuron_explorer.device") for r in content["resourceSpans"]]
    assert devices == [None, "cuda:0"]


def test_otlp_of_nothing_is_an_empty_list(tmp_path: Path) -> None:
    with load(write_trace(tmp_path / "t.parquet", [])) as trace:
        content = json.loads(written(trace, tmp_path / "t.json", write_otlp))
    assert content == {"resourceSpans": []}


def _value(resource: dict[str, Any], key: str) -> str | None:
    found: dict[str, dict[str, str]] = {
        told["key"]: told["value"] for told in resource["resource"]["attributes"]
    }
    return found.get(key, {}).get("stringValue")
