"""The schema as JSON is enough to write a query: units, keys, links, rules; metrics compute."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import kernel, launch, op, step, write_trace
from neuron_explorer.loading import load
from neuron_explorer.reports.reference import metrics, reference
from neuron_explorer.reports.schema_report import metrics_json, schema_json
from neuron_explorer.trace import Trace
from neuron_explorer.view_files import views

UNITS = {"_ns": "ns", "bytes": "bytes", "flops": "flop", "_bytes": "bytes"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(schema_json(None))
    return told


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """Two kernels of one step, one with a known cost."""
    cost = {"flops": 4_000, "read_bytes": 300, "write_bytes": 100}
    rows = [
        step(0, 0, 1_000),
        op(0, 900, name="aten::mm", **cost),
        launch(10, 5, op_id=1),
        kernel(100, 200, op_id=1, launch_id=2, **cost),
        kernel(400, 100, op_id=1, launch_id=2),
    ]
    path = write_trace(tmp_path_factory.mktemp("metrics") / "t.parquet", rows)
    with Trace.open([path]) as opened:
        yield opened


# ---- schema ---------------------------------------------------------------


def test_every_amount_has_its_unit(schema: dict[str, Any]) -> None:
    missing = [
        (table["name"], column["name"])
        for table in schema["tables"]
        for column in table["columns"]
        for ending, unit in UNITS.items()
        if column["name"].endswith(ending)
        and column["type"] in {"BIGINT", "DOUBLE"}
        and not column["name"].endswith("peak_flops")
        and column["unit"] != unit
    ]
    assert missing == []


def test_every_link_leads_to_a_key(schema: dict[str, Any]) -> None:
    keys = {table["name"]: table["key"] for table in schema["tables"]}
    links = {c["references"] for t in schema["tables"] for c in t["columns"]} - {""}
    assert len(links) > 6
    for link in links:
        target, _, columns = link.partition(" (")
        assert keys[target] == columns.partition(")")[0].split(", ")


def test_a_column_that_ends_in_id_says_where_it_leads(schema: dict[str, Any]) -> None:
    own = {"graph_id", "external_id", "event_id"}  # ids of torch; the key of the table itself
    silent = [
        (table["name"], column["name"])
        for table in schema["tables"][1:]
        for column in table["columns"]
        if column["name"].endswith(("_id", "_ids"))
        and column["name"] not in own
        and not column["references"]
        and column["name"] not in table["key"]
    ]
    assert silent == []


def test_rules_say_what_no_column_says(schema: dict[str, Any]) -> None:
    said = " ".join(schema["rules"])
    for word in ("NULL", "rank", "nanoseconds", "modelled", "self_ns", "timeline.busy_ns"):
        assert word in said


def test_families_are_those_that_ops_have(schema: dict[str, Any]) -> None:
    known = {term["name"]: term["doc"] for term in schema["families"]}
    assert "aten::mm" in known["matmul"] or "aten::addmm" in known["matmul"]
    assert {"elementwise", "norm", "copy", "attention", "collective"} <= known.keys()


def test_keys_tell_rows_apart(traces: Path) -> None:
    with load(traces / "kineto" / "h100-bert-small.json.gz") as opened:
        for view in views().values():
            if view.key:
                assert set(view.key) <= view.columns.keys()
                columns = ", ".join(view.key)
                twice = f"SELECT 1 FROM {view.name} GROUP BY {columns} HAVING count(*) > 1"
                assert opened.sql(twice).num_rows == 0, view.name


def test_nearly_every_view_has_a_key() -> None:
    without = {name for name, view in views().items() if not view.key}
    assert without <= {"import_issues", "modelled_gains", "op_patterns"}


# ---- metrics --------------------------------------------------------------

VALUES = {
    "device time": 300,
    "device busy time": 300,
    "device span": 400,
    "device idle time": 100,
    "busy share": 0.75,
    "step time": 1_000,
    "bytes": 400,
    "FLOPs": 4_000,
    "arithmetic intensity": 10.0,
    "achieved bandwidth": 2e9,
    "achieved FLOP rate": 2e10,
    "cost coverage": 2 / 3,
    "source coverage": 0.0,
    "gap": 100,
}


@pytest.mark.parametrize("metric", metrics(), ids=lambda metric: metric["metric"])
def test_formula_of_a_metric_computes_it(trace: Trace, metric: dict[str, str]) -> None:
    query = f"SELECT {metric['formula']} AS value FROM {metric['view_name']}"
    (row,) = trace.sql(query).to_pylist()
    if metric["metric"] in VALUES:
        assert row["value"] == pytest.approx(VALUES[metric["metric"]])
    assert metric["figures"] in {"measured", "derived", "modelled"}
    assert metric["unit"] in [
        "ns",
        "bytes",
        "flop",
        "flop/byte",
        "bytes/s",
        "flop/s",
        "share",
        "count",
    ]
    assert len(metric["definition"]) > 20


def test_values_are_of_metrics_that_are_there() -> None:
    assert VALUES.keys() <= {metric["metric"] for metric in metrics()}
    assert json.loads(metrics_json())["metrics"] == list(metrics())


def test_reference_is_gathered_once() -> None:
    assert reference() is reference()
