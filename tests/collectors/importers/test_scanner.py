"""The scanner on clean text of every layout, cut text, bad headers, and against time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from broken_traces import GOOD, in_object, named, scanned

from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.scanner import EventScanner

PRETTY = b"""
{
  "schemaVersion": 1,
  "deviceProperties": [
    { "id": 0, "name": "NVIDIA H100", "totalGlobalMem": 84942979072 }
  ],
  "note": "not \\"traceEvents\\": [ at all", "nested": {"traceEvents": [1]},
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 2,
    "ts": 1614800519473220.125, "dur": 0.250
    ,
    "args": {
      "External id": 36893488147419103232, "Input Dims": [[1, 2], []]
    }
  },
  {
    "ph": "i",

    "s": "g", "name": "end", "pid": "Traces", "tid": "", "ts": 5

  }
  ],
  "traceName": "/a/b.json", "displayTimeUnit": "ms"
}
"""


class TestCleanText:
    def test_original_bytes_are_kept(self) -> None:
        result = scanned(PRETTY)
        assert b'"ts": 1614800519473220.125' in result.raw[0]
        assert b'"External id": 36893488147419103232' in result.raw[0]
        assert all(event in PRETTY for event in result.raw)
        assert result.events == json.loads(PRETTY)["traceEvents"]
        assert (result.closed, result.truncated, result.issues) == (True, False, [])

    def test_header_before_and_after_the_events(self) -> None:
        document = json.loads(PRETTY)
        del document["traceEvents"]
        assert scanned(PRETTY).header == document

    @pytest.mark.parametrize("indent", [None, 0, 1, 4])
    @pytest.mark.parametrize("ensure_ascii", [True, False])
    def test_layouts_of_json_dump(self, *, indent: int | None, ensure_ascii: bool) -> None:
        events = [{"name": '日本 \u0007 \\ " 😀', "ph": "X", "args": {"ts": [1, {"ph": []}]}}] * 3
        document = {"a": {"b": ["ü"]}, "traceEvents": events, "z": 1.5}
        text = json.dumps(document, indent=indent, ensure_ascii=ensure_ascii)
        result = scanned(text.encode())
        assert result.events == events
        assert result.header == {"a": {"b": ["ü"]}, "z": 1.5}
        assert result.issues == []

    @pytest.mark.parametrize(
        ("data", "truncated"),
        [
            (b"[" + GOOD + b"," + GOOD + b"]", False),
            (b"[" + GOOD + b",\n" + GOOD + b",\n", False),
            (b"[" + GOOD + b"\n," + GOOD, False),
            (b'{"traceEvents":{"traceEvents":[' + GOOD + b"," + GOOD + b"]}}", False),
            (GOOD + b"\n" + GOOD + b"\n", False),
            (in_object(GOOD) + b"\n" + in_object(GOOD, before=b'"b":2,'), False),
            (b"[[" + GOOD + b"],[" + GOOD + b"]]", False),
            (b'{"name":"my trace","traceEvents":[' + GOOD + b"," + GOOD + b"]}", False),
            (b'{"traceEvents":[' + GOOD + b"," + GOOD, True),
            (b"\xef\xbb\xbf[" + GOOD + b"," + GOOD + b"]", False),
        ],
    )
    def test_top_level_shapes(self, *, data: bytes, truncated: bool) -> None:
        result = scanned(data)
        assert result.raw == [GOOD, GOOD]
        assert result.truncated is truncated
        assert result.kinds == ({"cut": 1} if truncated else {})

    @pytest.mark.parametrize(
        "data", [b"[]", b"{}", b'{"traceEvents":[]}', b'{"traceEvents":null}', b"", b" \n"]
    )
    def test_no_events(self, data: bytes) -> None:
        result = scanned(data)
        assert (result.raw, result.truncated) == ([], False)

    def test_empty_events_are_counted(self) -> None:
        result = scanned(b"[null,{}," + GOOD + b",null, { }]{}")
        assert result.raw == [GOOD]
        assert result.kinds == {"empty_event": 5}

    def test_a_later_key_of_the_same_name_is_reported(self) -> None:
        result = scanned(in_object(GOOD, before=b'"a":1,') + in_object(GOOD, before=b'"a":2,'))
        assert result.header == {"a": 1}
        assert result.kinds == {"duplicate_key": 1}

    def test_duplicate_keys_of_an_event_stay(self) -> None:
        event = b'{"ph":"X","a":1,"a":2}'
        assert scanned(b"[" + event + b"]").raw == [event]

    def test_a_big_header_value_is_left_out(self) -> None:
        before = b'"big":"' + b"x" * (2 << 20) + b'","a":1,'
        result = scanned(in_object(GOOD, before=before))
        assert (result.raw, result.header) == ([GOOD], {"a": 1})
        assert result.kinds == {"big_header_value": 1}

    def test_real_traces_equal_json(self, traces: Path) -> None:
        for path in sorted((traces / "kineto").glob("*.json")):
            data = path.read_bytes()
            document = json.loads(data)
            result = scanned(data, sizes=[100_003])
            assert result.events == document.pop("traceEvents"), path
            assert result.header == document
            assert result.issues == []


class TestCut:
    LAST = named(rb"\u65e5 text") + b"," + GOOD

    @pytest.mark.parametrize("size", range(len(LAST)))
    def test_cut_anywhere_in_an_event(self, size: int) -> None:
        data = b'{"a":1,"traceEvents":[' + GOOD + b"," + self.LAST[:size]
        result = scanned(data)
        assert result.good == 1
        assert len(result.raw) == (2 if size >= len(named(rb"\u65e5 text")) else 1)
        assert result.truncated
        assert result.kinds == {"cut": 1}
        assert result.last_offset is not None
        assert GOOD in data[: result.last_offset]
        assert result.issues[0]["first_position"] == result.last_offset

    @pytest.mark.parametrize("data", [b"{", b'{"tra', b'{"a":', b'{"a":1', b'{"a":[1,', b'{"a":1,'])
    def test_cut_in_the_header(self, data: bytes) -> None:
        result = scanned(data)
        assert (result.raw, result.truncated) == ([], True)

    @pytest.mark.parametrize("data", [b"[", b"[{", b'[{"ph":"X"', b"[nul"])
    def test_cut_in_the_first_event(self, data: bytes) -> None:
        assert scanned(data).raw == []


class TestHeader:
    BAD = (
        b'"schemaVersion": 1,\n  "k": "va"l\\ue",\n  "k2": {bad json,\n  "k3": [1,2,\n'
        b'  "k4": "C:/x" y,\n  "k5": {"a": 1,\n  "ok": 2,\n  '
    )

    def test_bad_values_are_skipped(self) -> None:
        result = scanned(in_object(GOOD, before=self.BAD, after=b',"x":inf,"y":NaN,"z":3'))
        assert result.raw == [GOOD]
        assert {"schemaVersion": 1, "ok": 2, "x": None, "y": None, "z": 3}.items() <= (
            result.header.items()
        )
        assert result.kinds == {"bad_header_value": 5, "not_a_number": 2}

    def test_a_value_without_its_end_does_not_take_the_events(self) -> None:
        data = in_object(*[GOOD] * 20_000, before=b'"k":{"a":1,\n', after=b',\n"z":1')
        result = scanned(data)
        assert result.good == 20_000
        assert result.header == {"z": 1}
        assert result.kinds["bad_header_value"] == 1

    def test_backslashes_in_an_unescaped_file(self) -> None:
        data = in_object(named(rb"C:\x"), after=rb',"traceName":"C:\new\trace.json"')
        assert scanned(data).header == {"traceName": r"C:\new\trace.json"}


class TestResume:
    def test_begin_and_skip_keep_count_of_positions(self) -> None:
        issues = IssueLog()
        scanner = EventScanner(issues)
        head = b'{"a":1,"traceEvents":['
        assert scanner.begin(head)
        scanner.skip(1000)
        assert scanner.feed(b',{"ph":"X",}]') == []
        assert scanner.finish() == [b'{"ph":"X"}']
        assert scanner.header == {"a": 1}
        assert issues.records()[0]["first_position"] == len(head) + 1000 + len(b',{"ph":"X",')

    def test_begin_leaves_the_scanner_as_it_was(self) -> None:
        scanner = EventScanner(IssueLog())
        data = b'{"a":{"traceEvents":[' + GOOD
        assert not scanner.begin(data)
        assert not scanner.begin(b'{"a":{"traceEvents":[')
        text = b'{"a":{"traceEvents":[1]},"traceEvents":[' + GOOD + b"]}"
        assert scanner.feed(text) + scanner.finish() == [GOOD]
        assert scanner.header == {"a": {"traceEvents": [1]}}

    def test_inside_events(self) -> None:
        scanner = EventScanner(IssueLog(), offset=100, inside_events=True)
        events = scanner.feed(b"\n" + GOOD + b"," + GOOD + b'], "z": 1}') + scanner.finish()
        assert events == [GOOD, GOOD]
        assert scanner.header == {"z": 1}
        assert (scanner.closed, scanner.truncated) == (True, False)


BAD = GOOD.replace(b'"good"', b'"a"b"')


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        (b"{" * 5_000_000, 5),
        (b"[" * 5_000_000, 5),
        (b"[" + b"{" * 5_000_000, 5),
        (b"[{" * 2_500_000, 5),
        (b"[" + b'{"ph":' * 800_000, 8),
        (b"[" + b'{"ph":[1,' * 500_000, 8),
        (b'[{"a":' + b'"' * 5_000_000, 5),
        (b"[" + b"\xff\x00x" * 1_700_000, 5),
        (in_object(*[BAD] * 50_000), 15),
        (in_object(*[named(rb"C:\new")] * 50_000), 15),
        (in_object(GOOD, named(b"x" * 50_000_000), GOOD), 10),
        (in_object(GOOD, named(b"x" * 30_000_000).replace(b":3", b":inf"), GOOD), 10),
    ],
    ids=range(12),
)
def test_time_is_linear(data: bytes, seconds: float) -> None:
    start = time.process_time()
    scanned(data, sizes=[1 << 16])
    assert time.process_time() - start < seconds
