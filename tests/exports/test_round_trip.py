"""Parquet -> JSON -> Parquet keeps every value.

What does not survive, and nothing else: white space inside the JSON text of `attributes` and
of the columns of inputs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from exports.conftest import events_of, export, imported
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from builders import kernel, launch, op, row, write_trace
from neuron_explorer.collectors.importers import import_file
from neuron_explorer.errors import ImportFailedError
from neuron_explorer.exchange import CARRIER, KEY, TAKEN
from neuron_explorer.exports.window import Window
from neuron_explorer.loading import load
from neuron_explorer.schema import COLUMNS, KINDS

JSON_TEXTS = frozenset(
    ["input_shapes", "input_dtypes", "input_strides", "input_values", "attributes"]
)
LINKS = ("parent_id", "launch_id", "op_id", "forward_id")
ROWS = 12

_text = st.text(max_size=8) | st.sampled_from(
    ["</script>", '"', "\\", "\x1b[31m", "核心", "a\nb", KEY, CARRIER, "\u2028", "NaN", "é" * 3]
)
_scalar = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _text
_attributes = st.dictionaries(
    _text | st.sampled_from(["stream", "name", KEY, "grid", *TAKEN[:2]]),
    _scalar | st.lists(_scalar, max_size=2) | st.dictionaries(_text, _scalar, max_size=2),
    max_size=3,
)
_shapes = st.lists(st.lists(st.integers(0, 99), max_size=3) | _text, max_size=3)
_roles = st.sampled_from([(layer, kind) for layer, kinds in KINDS.items() for kind in kinds])


def _values(name: str, kind: str) -> st.SearchStrategy[Any]:
    if name in LINKS:
        return st.integers(0, ROWS - 1)
    if name == "attributes":
        return _attributes
    if name in JSON_TEXTS or name == "output_shapes":
        return _shapes
    if name == "device":
        return st.sampled_from(["cuda:0", "cuda:1", "cpu", "neuron:0", "陽子"])
    by_type = {"string": _text, "bool": st.booleans(), "list": st.lists(_text, max_size=2)}
    bound = 2**31 - 1 if kind == "int32" else 2**62
    return by_type.get(kind, st.integers(-bound, bound))


_given = {"event_id", "rank", "layer", "kind", "start_ns", "duration_ns", "stack"}
_columns = st.fixed_dictionaries(
    {},
    optional={
        c.name: _values(c.name, str(c.type).partition("<")[0].replace("dictionary", "string"))
        for c in COLUMNS
        if c.name not in _given
    }
    | {"stack": st.lists(st.text("ab(): \t", min_size=1), min_size=1).map("\n".join)},
)
_start = st.none() | st.integers(0, 10**6) | st.integers(0, 2**61)
_duration = st.none() | st.integers(0, 10**6)


@st.composite
def _rows(draw: st.DrawFn) -> list[dict[str, object]]:
    found = []
    for _ in range(draw(st.integers(1, ROWS))):
        layer, kind = draw(_roles)
        found.append({**row(layer, kind, draw(_start), draw(_duration)), **draw(_columns)})
    return found


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(rows=_rows(), form=st.sampled_from(["chrome", "perfetto"]))
def test_every_value_of_any_trace_comes_back(rows: list[dict[str, object]], form: str) -> None:
    present = range(len(rows))
    for each in rows:
        for link in LINKS:
            if each.get(link) not in present:
                each.pop(link, None)
    with TemporaryDirectory() as folder:
        before = write_trace(Path(folder) / "t.parquet", rows)
        after = imported(export(before, form))
        assert _table(after) == _table(before)


REAL = [
    "mi300-compiled-triton",
    "rocm-vllm-decode-graph",
    "h100-bert-small",
    "a100-event-sync-multi-stream",
    "gp100-gpu-annotations",
]


@pytest.mark.parametrize(
    ("name", "form"), [(name, "perfetto") for name in REAL] + [(REAL[0], "chrome")]
)
def test_a_real_trace_says_the_same_again(
    name: str, form: str, shared: Callable[[str], Path]
) -> None:
    before = shared(name)
    after = imported(export(before, form))
    assert _table(after) == _table(before)
    assert _metadata(after) == _metadata(before)


def test_findings_kernels_and_lines_are_the_same_again(shared: Callable[[str], Path]) -> None:
    before = shared("h100-bert-small")
    with load(before) as first, load(export(before, "perfetto")) as second:
        for view in ("kernels", "lines", "roofline", "steps", "queues"):
            question = f"SELECT * FROM {view} ORDER BY ALL"
            assert second.sql(question).to_pylist() == first.sql(question).to_pylist()
        assert second.findings() == first.findings()


@pytest.mark.torch
def test_a_capture_keeps_its_lines_and_sources(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import neuron_explorer  # noqa: PLC0415 - only where torch is

    before = tmp_path / "t.parquet"
    with neuron_explorer.profile(output=before):
        x = torch.ones(64, 64)
        (x @ x).relu().sum().item()
    after = imported(export(before, "chrome"))
    assert _table(after) == _table(before)
    assert _metadata(after) == _metadata(before)
    with load(after) as trace:
        (row_,) = trace.sql(
            "SELECT source_file FROM lines WHERE source_function LIKE 'test_a_capture%' LIMIT 1"
        ).to_pylist()
        assert row_["source_file"].endswith("test_round_trip.py")


def test_a_part_of_a_trace_comes_back_without_links_to_what_is_not_there(tmp_path: Path) -> None:
    before = write_trace(
        tmp_path / "t.parquet",
        [op(0, 50), launch(10, 5, op_id=0), kernel(100, 20, launch_id=1, op_id=0)],
    )
    after = imported(export(before, "perfetto", Window(from_ns=90)))
    with load(after) as trace:
        ((event_id, launch_id, start),) = (
            tuple(r.values())
            for r in trace.sql("SELECT event_id, launch_id, start_ns FROM events").to_pylist()
        )
    assert (event_id, launch_id, start) == (0, None, 100)


def test_modelled_slices_come_back_as_the_columns_that_they_are(tmp_path: Path) -> None:
    told = {"modelled_start_ns": 70, "modelled_duration_ns": 40, "device": "neuron:0 (dry run)"}
    path = write_trace(tmp_path / "t.parquet", [op(0, 5), kernel(10, 5, op_id=0, **told)])
    json_file = export(path, "perfetto")
    assert sum(e.get("cat") == "modelled" for e in events_of(json_file)) == 1
    back = imported(json_file)
    assert _table(back) == _table(path)
    figures = "SELECT count(*), sum(duration_ns), sum(modelled_duration_ns) FROM events"
    with load(back) as trace:
        assert list(trace.sql(figures).to_pylist()[0].values()) == [2, 10, 40]


def test_a_cut_file_says_so_and_keeps_the_rest(tmp_path: Path) -> None:
    rows = [op(i * 10, 5, name=f"op{i}") for i in range(50)]
    whole = export(write_trace(tmp_path / "t.parquet", rows), "chrome").read_bytes()
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(whole)[:-200])
    report = import_file(cut, tmp_path / "cut.parquet")
    assert report.truncated
    assert 0 < report.events < 50
    assert "rows_missing" in {issue["kind"] for issue in report.issues}


def test_several_ranks_in_one_file_are_only_to_look_at(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_trace(tmp_path / f"rank={rank}.parquet", [op(0, 5, rank=rank)])
    written = export(tmp_path, "perfetto")
    with pytest.raises(ImportFailedError, match="2 ranks"):
        imported(written)
    names = {e["args"]["name"] for e in events_of(written) if e["name"] == "process_name"}
    assert names == {"rank 0: process 1", "rank 1: process 1"}


@pytest.mark.parametrize("form", ["chrome", "perfetto"])
def test_each_rank_of_a_folder_comes_back_on_its_own(form: str, tmp_path: Path) -> None:
    files = {}
    for rank in (0, 3):
        rows = [op(rank, 50, rank=rank), kernel(20, 5 + rank, rank=rank, op_id=0)]
        told = {"summary": {"rank": rank, "events": 2}, "environment": {"hostname": f"node{rank}"}}
        files[rank] = write_trace(tmp_path / "run" / f"rank={rank}.parquet", rows, told)
    for rank, before in files.items():
        after = imported(export(tmp_path / "run", form, Window(rank=rank)))
        assert _table(after) == _table(before)
        assert _metadata(after) == _metadata(before)


def _table(path: Path) -> list[dict[str, Any]]:
    rows = parquet.read_table(path).to_pylist()
    for each in rows:
        for name in JSON_TEXTS:
            each[name] = None if each[name] is None else json.loads(each[name])
    return rows


def _metadata(path: Path) -> dict[bytes, Any]:
    found = parquet.read_metadata(path).metadata or {}
    return {k: json.loads(v) for k, v in found.items() if k.startswith(b"neuron_explorer.")}
