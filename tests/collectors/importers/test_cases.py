"""Traces that public bug reports are about, each with the values it should give.

The numbers are those of the case list: B01 to B40, as far as a file can show them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from neuron_explorer.collectors.importers import ImportReport, import_file
from neuron_explorer.errors import ImportFailedError
from neuron_explorer.schema import METADATA_PREFIX

Row = dict[str, Any]
BASE = 1790857026000000000


class Imported:
    """A file imported and read back."""

    def __init__(self, report: ImportReport) -> None:
        table = parquet.read_table(report.output)
        self.report = report
        self.rows: list[Row] = table.to_pylist()
        self.metadata = {
            key.decode().removeprefix(METADATA_PREFIX): json.loads(value)
            for key, value in (table.schema.metadata or {}).items()
            if key.decode().startswith(METADATA_PREFIX)
        }

    def of(self, layer: str) -> list[Row]:
        return [row for row in self.rows if row["layer"] == layer]

    @property
    def issues(self) -> dict[str, int]:
        return {issue["kind"]: issue["count"] for issue in self.report.issues}


def imported(folder: Path, data: bytes | str, name: str = "trace.json") -> Imported:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return Imported(import_file(path, folder / "trace.parquet"))


def trace(events: Iterable[Row | str], **header: object) -> str:
    texts = [
        event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        for event in events
    ]
    beside = "".join(f'"{key}": {json.dumps(value)}, ' for key, value in header.items())
    return "{" + beside + '"traceEvents": [' + ", ".join(texts) + "]}"


def kernel(ts: float, dur: float, stream: int = 7, **args: object) -> Row:
    return {
        "ph": "X",
        "cat": "kernel",
        "name": f"k{ts:g}",
        "pid": 0,
        "tid": stream,
        "ts": ts,
        "dur": dur,
        "args": {"device": 0, "stream": stream, **args},
    }


def host(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: object) -> Row:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 100,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def test_b01_backslashes_in_paths(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        rb'{"traceEvents":[{"ph":"X","cat":"python_function",'
        rb'"name":"C:\proj\new\x.py(3): f","pid":1,"tid":1,"ts":1,"dur":2}]}',
    )
    assert [row["name"] for row in found.rows] == [r"C:\proj\new\x.py(3): f"]
    assert found.rows[0]["source_file"] == "C:/proj/new/x.py"
    assert found.issues == {"bad_escape": 1}


def test_b01_holds_for_the_clean_events_before_the_first_bad_one(tmp_path: Path) -> None:
    names = [rb"C:\new.py(1): a", rb"C:\table.py(2): b", rb"C:\proj\y.py(3): c"]
    events = b",".join(
        b'{"ph":"X","cat":"python_function","name":"%s","pid":1,"tid":1,"ts":%d,"dur":1}'
        % (name, place)
        for place, name in enumerate(names)
    )
    found = imported(tmp_path, b'{"traceEvents":[' + events + b"]}")
    assert [row["name"].encode() for row in found.rows] == names


def test_b02_unescaped_quote(tmp_path: Path) -> None:
    broken = '{"ph":"X","cat":"user_annotation","name":"a"b","pid":1,"tid":1,"ts":5,"dur":1}'
    found = imported(tmp_path, trace([kernel(1, 2), broken, kernel(9, 2)]))
    assert [row["name"] for row in found.rows] == ["k1", 'a"b', "k9"]
    assert found.issues == {"unescaped_quote": 1}


@pytest.mark.parametrize("header", [r'"k": "va"l\ue"', '"k2": {bad json'])
def test_b03_bad_metadata_value(tmp_path: Path, header: str) -> None:
    text = "{" + header + ', "traceEvents": [' + json.dumps(kernel(1, 2)) + "]}"
    found = imported(tmp_path, text)
    assert [row["name"] for row in found.rows] == ["k1"]
    assert "bad_header_value" in found.issues


def test_b05_names_lost_by_the_exporter(tmp_path: Path) -> None:
    lost = [host("user_annotation", "unknown", ts, 1) for ts in (1, 3)]
    assert imported(tmp_path, trace(lost)).issues == {"names_lost": 2}
    assert imported(tmp_path, trace(lost[:1])).issues == {}


@pytest.mark.parametrize("lead", ["", "x", "xx"])
def test_b05_names_in_any_script_at_the_end_of_a_file(tmp_path: Path, lead: str) -> None:
    # what ends the list is no event, and the parser's complaint about it quotes what is around it
    names = [lead + "核心" * 100, lead + "é" * 200]
    found = imported(tmp_path, trace([host("cpu_op", name, 1, 1) for name in names]))
    assert [row["name"] for row in found.rows] == names
    assert found.issues == {}


@pytest.mark.parametrize("word", ["inf", "-Infinity", "nan", "NaN", "Infinity", "-nan(ind)"])
def test_b06_bare_words_for_numbers(tmp_path: Path, word: str) -> None:
    copy = (
        '{"ph":"X","cat":"gpu_memcpy","name":"m","pid":0,"tid":7,"ts":5,"dur":0,'
        '"args":{"memory bandwidth (GB/s)":WORD}}'
    )
    untimed = '{"ph":"X","cat":"kernel","name":"n","ts":WORD,"dur":1,"pid":0,"tid":7}'
    text = trace([copy, untimed, json.dumps(kernel(9, 1))]).replace("WORD", word)
    found = imported(tmp_path, text)
    assert [row["name"] for row in found.rows] == ["m", "n", "k9"]
    assert json.loads(found.rows[0]["attributes"]) == {"memory bandwidth (GB/s)": None}
    bad = found.rows[1]
    assert (bad["layer"], bad["kind"], bad["start_ns"]) == ("meta", "unreadable", None)
    assert found.issues["not_a_number"] == 2


def whole() -> bytes:
    events = [host("cpu_op", f"aten::op{i}", 10 * i, 5, **{"External id": i}) for i in range(50)]
    return trace(events).encode()


@pytest.mark.parametrize("share", [0.2, 0.6, 0.61, 0.62, 0.63, 0.95])
def test_b07_cut_in_the_middle(tmp_path: Path, share: float) -> None:
    data = whole()[: int(len(whole()) * share)]
    complete = data.count(b"}}")
    found = imported(tmp_path, data)
    assert [row["name"] for row in found.rows] == [f"aten::op{i}" for i in range(complete)]
    assert found.report.truncated
    assert found.metadata["origin"]["truncated"]
    position = next(i["first_position"] for i in found.report.issues if i["kind"] == "cut")
    assert len(data) - 200 <= position <= len(data)


def test_b07_cut_inside_an_escape(tmp_path: Path) -> None:
    text = trace([kernel(1, 2)])[:-2] + r', {"ph":"X","name":"\u00'
    found = imported(tmp_path, text)
    assert [row["name"] for row in found.rows] == ["k1"]
    assert found.report.truncated


def test_b07_cut_gzip_stream(tmp_path: Path) -> None:
    data = gzip.compress(whole() * 1, compresslevel=1)
    found = imported(tmp_path, data[: len(data) * 6 // 10], "trace.json.gz")
    names = [row["name"] for row in found.rows]
    assert names == [f"aten::op{i}" for i in range(len(names))]
    assert found.report.truncated


@pytest.mark.parametrize("data", [b"", b"{", b"[", b"   \n", b'{"traceEvents"'])
def test_b07_nothing_to_read(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ImportFailedError):
        imported(tmp_path, data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.json"]


def test_b08_several_gzip_members_and_padding(tmp_path: Path) -> None:
    data, half = whole(), len(whole()) // 2
    packed = gzip.compress(data[:half]) + gzip.compress(data[half:]) + bytes(512)
    assert len(imported(tmp_path, packed, "trace.json.gz").rows) == 50


@pytest.mark.parametrize(
    ("name", "data"), [("trace.json.gz", whole()), ("trace.json", gzip.compress(whole()))]
)
def test_b08_wrong_suffix(tmp_path: Path, name: str, data: bytes) -> None:
    found = imported(tmp_path, data, name)
    assert len(found.rows) == 50
    assert found.issues == {"wrong_suffix": 1}


@pytest.mark.parametrize("number", ["18446744073709551615", "36893488147419103232"])
def test_b09_integers_beyond_int64(tmp_path: Path, number: str) -> None:
    call = json.dumps(host("cuda_runtime", "cudaLaunchKernel", 1, 2, correlation=5))
    work = json.dumps(kernel(4, 2, correlation=5)).replace("}}", f', "Comms Id": {number}}}}}')
    found = imported(
        tmp_path,
        trace([call.replace(": 5}", f": {number}}}"), work.replace(": 5,", f": {number},")]),
    )
    attributes = found.of("hardware")[0]["attributes"]
    assert f'"Comms Id":{number}' in attributes
    assert f'"correlation":"{number}"' in attributes
    assert found.of("hardware")[0]["launch_id"] == found.of("runtime")[0]["event_id"]


SHAPES = {
    "bare list": "[{0}, {1}]",
    "never closed": "[{0}, {1},",
    "nested": '{{"traceEvents": {{"traceEvents": [{0}, {1}]}}}}',
    "a list around it": '[{{"traceEvents": [{0}, {1}]}}]',
    "a list around a header and it": '[{{"schemaVersion": 1, "traceEvents": [{0}, {1}]}}]',
    "trailing object": '{{"traceEvents": [{0}, {1}]}} {{}}',
    "null events": '{{"traceEvents": [null, {0}, {{}}, {1}, null]}}',
    "header after": '{{"traceEvents": [{0}, {1}], "displayTimeUnit": "ms"}}',
    "trailing comma": '{{"traceEvents": [{0}, {1},]}}',
    "byte order mark": '\ufeff{{"traceEvents": [{0}, {1}]}}',
    "line by line": "{0}\n{1}\n",
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_b12_other_top_level_shapes(tmp_path: Path, shape: str) -> None:
    text = shape.format(json.dumps(kernel(1, 2)), json.dumps(kernel(5, 2)))
    assert [row["name"] for row in imported(tmp_path, text).rows] == ["k1", "k5"]


def test_b12_skipped_events_are_counted(tmp_path: Path) -> None:
    text = '{"traceEvents": [null, ' + json.dumps(kernel(1, 2)) + ", {}]}"
    assert imported(tmp_path, text).issues == {"empty_event": 2}


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', "{}"])
def test_b12_no_events(tmp_path: Path, text: str) -> None:
    with pytest.raises(ImportFailedError, match="no trace events"):
        imported(tmp_path, text)


def test_b13_pid_and_tid_of_any_type(tmp_path: Path) -> None:
    span = {"ph": "X", "cat": "Trace", "name": "s", "pid": "Spans", "tid": "PyTorch Profiler"}
    empty = {"ph": "i", "name": "Iteration Start", "pid": "", "tid": "", "ts": 1, "s": "g"}
    old = {"ph": "X", "cat": "Kernel", "name": "k", "pid": "CUDA functions", "tid": "stream 7"}
    huge = host("cpu_op", "aten::add", 1, 1)
    huge["pid"], huge["tid"] = -3, 140000000000000
    found = imported(
        tmp_path, trace([span | {"ts": 1, "dur": 9}, empty, old | {"ts": 2, "dur": 3}, huge])
    )
    span_row, marker, work, op = found.rows
    assert (span_row["layer"], span_row["pid"], span_row["pid_raw"]) == ("meta", None, "Spans")
    assert (marker["layer"], marker["pid"]) == ("meta", None)
    assert (work["layer"], work["stream"], work["queue"]) == ("hardware", 7, "stream 7")
    assert (op["pid"], op["tid"], op["pid_raw"]) == (-3, 140000000000000, None)


def test_b18_all_clocks_give_the_same_nanoseconds(tmp_path: Path) -> None:
    us = BASE // 1000
    whole_us = trace([kernel(us + t, 2) for t in (1, 5, 9)])
    relative = [kernel(t, 2) for t in (1, 5, 9)]
    starts = []
    for number, text in enumerate(
        [
            whole_us,
            trace(relative, baseTimeNanoseconds=BASE, displayTimeUnit="ms"),
            trace(relative, baseTimeNanoseconds=BASE, displayTimeUnit="ns"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        starts.append([row["start_ns"] for row in imported(folder, text).rows])
    assert starts == [[BASE + 1000, BASE + 5000, BASE + 9000]] * 3


def test_b19_decimal_microseconds_are_exact(tmp_path: Path) -> None:
    text = trace(
        [
            '{"ph":"X","cat":"kernel","name":"a","pid":0,"ts":1614800519473220.125,"dur":0.250}',
            '{"ph":"X","cat":"kernel","name":"b","pid":0,"ts":1614800519473220.375,"dur":0.250}',
        ]
    )
    first, second = imported(tmp_path, text).rows
    assert first["start_ns"] == 1614800519473220125
    assert first["duration_ns"] == 250
    assert second["start_ns"] == first["start_ns"] + first["duration_ns"]


def test_b20_work_stamped_zero_is_not_in_the_timeline(tmp_path: Path) -> None:
    good = [kernel(1e9 + 10 * i, 5, correlation=i + 1) for i in range(5)]
    lost = [kernel(0, 0, correlation=i + 1) for i in range(5, 8)]
    calls = [
        host("cuda_runtime", "cudaLaunchKernel", 1e9 + i, 1, correlation=i + 1) for i in range(8)
    ]
    found = imported(tmp_path, trace([*good, *lost, *calls]))
    work = found.of("hardware")
    assert [row["start_ns"] is None for row in work] == [False] * 5 + [True] * 3
    assert all(row["launch_id"] is not None for row in work)
    assert all(row["raw_start_ns"] == 0 for row in work[5:])
    assert found.issues["time_set_aside"] == 3


def test_b22_duration_over_later_work_of_the_queue(tmp_path: Path) -> None:
    found = imported(
        tmp_path, trace([kernel(0, 10), kernel(20, 3_400_000), kernel(35, 10), kernel(50, 10)])
    )
    assert [row["duration_ns"] for row in found.rows] == [10_000, 15_000, 10_000, 10_000]
    assert [row["raw_duration_ns"] for row in found.rows] == [None, 3_400_000_000, None, None]
    assert found.issues == {"duration_overrun": 1}


def test_b23_small_overlaps_are_left_alone(tmp_path: Path) -> None:
    found = imported(tmp_path, trace([kernel(0, 10), kernel(9, 8), kernel(16, 5)]))
    assert [row["duration_ns"] for row in found.rows] == [10_000, 8_000, 5_000]
    assert found.issues == {}


def test_b24_ranges_that_do_not_nest(tmp_path: Path) -> None:
    child_first = [
        host("cpu_op", "aten::child", 10, 5, tid=2),
        host("cpu_op", "aten::p", 0, 20, tid=2),
    ]
    crossing = [host("user_annotation", "A", 0, 100), host("user_annotation", "B", 50, 70)]
    found = imported(tmp_path, trace([*crossing, *child_first]))
    a, b, child, parent = found.rows
    assert (a["self_ns"], b["self_ns"]) == (50_000, 70_000)
    assert child["parent_id"] == parent["event_id"]
    assert parent["self_ns"] == 15_000


def test_b29_sync_rows_are_not_work(tmp_path: Path) -> None:
    sync = kernel(0, 100) | {"cat": "cuda_sync", "name": "Stream Wait"}
    found = imported(tmp_path, trace([kernel(0, 100, 7), kernel(0, 100, 8), sync]))
    assert [row["layer"] for row in found.rows] == ["hardware", "hardware", "host"]


def test_b35_truncated_shape_lists_have_no_bytes(tmp_path: Path) -> None:
    args: dict[str, Any] = {
        "Input Dims": [[], []],
        "Input type": ["TensorList", "Scalar"],
        "Input Strides": [[], []],
        "Concrete Inputs": ["", "0"],
        "External id": 1,
    }
    found = imported(tmp_path, trace([host("cpu_op", "aten::cat", 0, 10, **args)]))
    (row,) = found.rows
    assert (row["read_bytes"], row["write_bytes"]) == (None, None)
    assert "shape_list_truncated" in row["cost_note"]


def test_b37_one_graph_launch_for_many_kernels(tmp_path: Path) -> None:
    launch = host("cuda_runtime", "cudaGraphLaunch", 0, 5, correlation=9)
    kernels = [kernel(10 + 2 * i, 1, correlation=9, **{"External id": 0}) for i in range(40)]
    found = imported(tmp_path, trace([launch, *kernels]))
    (call,) = found.of("runtime")
    work = found.of("hardware")
    assert call["kind"] == "graph_launch"
    assert len(found.rows) == 41
    assert {row["launch_id"] for row in work} == {call["event_id"]}
    assert {row["input_shapes"] for row in work} == {None}
    assert {row["cost_note"] for row in work} == {"graph_replay"}


def test_b40_reused_correlation_ids_are_told_apart_by_time(tmp_path: Path) -> None:
    calls = [host("cuda_runtime", "cudaLaunchKernel", t, 1, correlation=1) for t in (0, 100)]
    work = [kernel(t, 5, correlation=1) for t in (10, 110)]
    found = imported(tmp_path, trace([*calls, *work]))
    assert [row["launch_id"] for row in found.of("hardware")] == [0, 1]


ODD = [
    {"ph": "X", "name": 5, "pid": 1.5, "tid": True, "ts": "7.125", "dur": "2", "args": "text"},
    {"ph": "X", "name": None, "pid": [1], "tid": {"a": 1}, "ts": 8, "dur": None, "args": [1, 2]},
    {"ph": "X", "name": ["a"], "pid": None, "ts": 9, "dur": 1, "args": None, "cat": 3},
    {
        "ph": "X",
        "name": "x",
        "pid": 1,
        "tid": 1,
        "ts": 10,
        "args": {"device": "gpu", "stream": 1.5},
    },
    {"ph": "", "name": "y", "ts": 11},
    {"name": "z", "ts": 12},
]


def test_values_of_odd_types_keep_their_event(tmp_path: Path) -> None:
    found = imported(tmp_path, json.dumps(ODD))
    assert [row["name"] for row in found.rows] == ["5", None, '["a"]', "x", "y", "z"]
    assert [row["start_ns"] for row in found.rows] == [7125, 8000, 9000, 10000, 11000, 12000]
    assert found.rows[0]["duration_ns"] == 2000
    assert json.loads(found.rows[3]["attributes"]) == {"device": "gpu"}


def test_keys_beside_the_known_ones_are_kept(tmp_path: Path) -> None:
    event = {"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    event |= {"tts": 5, "cname": "good", "args": {"a": 1}}
    found = imported(tmp_path, json.dumps([event, kernel(5, 1)]))
    assert json.loads(found.rows[0]["attributes"]) == {"tts": 5, "cname": "good", "a": 1}


@pytest.mark.parametrize("where", [0, 1, 2])
def test_bytes_that_are_not_utf8_cost_only_themselves(tmp_path: Path, where: int) -> None:
    events = [json.dumps(kernel(10 * n, 5)).encode() for n in range(3)]
    events[where] = events[where].replace(b'"name": "k', b'"name": "\xae\xffk')
    found = imported(tmp_path, b'{"traceEvents": [' + b", ".join(events) + b"]}")
    names = [f"k{10 * n}" for n in range(3)]
    names[where] = "\ufffd\ufffd" + names[where]
    assert [row["name"] for row in found.rows] == names
    assert "bad_utf8" in found.issues


@pytest.mark.filterwarnings("error")
def test_absurd_times_are_set_aside(tmp_path: Path) -> None:
    begin, end = ({"ph": ph, "name": "x", "pid": 1, "tid": 1} for ph in "BE")
    events = [begin | {"ts": -9e15}, end | {"ts": 9e15}, kernel(5, 1)]
    found = imported(tmp_path, trace(events, baseTimeNanoseconds=10**30))
    assert [row["kind"] for row in found.rows] == ["unreadable", "unreadable", "kernel"]
    assert found.rows[2]["start_ns"] == 5000
    assert found.issues["no_usable_time"] == 2
