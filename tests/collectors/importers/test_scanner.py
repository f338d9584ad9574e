"""The scanner on clean text of every layout, and on every kind of broken text."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from broken_traces import GOOD, beside_good, in_object, named, scanned

from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.scanner import EventScanner, UnescapedFileError

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
    def test_layouts_of_json_dump(self, indent: int | None, ensure_ascii: bool) -> None:
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
    def test_top_level_shapes(self, data: bytes, truncated: bool) -> None:
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


class TestStrings:
    @pytest.mark.parametrize(
        ("name", "right"),
        [
            (rb"C:\proj\new\x.py(3): f", r"C:\proj\new\x.py(3): f"),
            (rb"C:\proj" + b"\\", "C:\\proj\\"),
            (rb"\\server\u0041\dir", r"\\server\u0041\dir"),
            (rb"say \"hi\" in C:\dir", r'say "hi" in C:\dir'),
            (rb'C:\dir "x" y', r'C:\dir "x" y'),
        ],
    )
    def test_raw_backslashes(self, name: bytes, right: str) -> None:
        result = scanned(beside_good(named(name), named(rb"D:\new\table"), named(rb"\d")))
        assert [event["name"] for event in result.others] == [right, r"D:\new\table", r"\d"]
        assert result.good == 4
        assert result.kinds["bad_escape"] == 3
        assert result.others[0]["dur"] == 4

    @pytest.mark.parametrize(
        ("name", "right"),
        [
            (rb"\u65e5\u672c", "日本"),
            (rb"C:\\proj\\new", r"C:\proj\new"),
            (rb"\"quoted\"", '"quoted"'),
            (rb"C:\u65e5", r"C:\u65e5"),
            (rb"\\server", r"\\server"),
            (rb"line\nline", r"line\nline"),
        ],
    )
    def test_escaped_texts_in_an_unescaped_file(self, name: bytes, right: str) -> None:
        result = scanned(beside_good(named(rb"C:\proj"), named(name)))
        assert [event["name"] for event in result.others] == [r"C:\proj", right]

    def test_an_unescaped_file_is_announced(self) -> None:
        scanner = EventScanner(IssueLog())
        scanner.feed(beside_good(named(rb"C:\proj")))
        with pytest.raises(UnescapedFileError):
            scanner.finish()

    @pytest.mark.parametrize(
        "name",
        ['a"b', '"', '"a"', 'f("a", "b")', '{"a": 1}', '{"name": "x", "id": 3}', 'x", "y', 'a"}b'],
    )
    def test_unescaped_quotes(self, name: str) -> None:
        result = scanned(beside_good(named(name.encode())))
        assert [event["name"] for event in result.others] == [name]
        assert result.others[0]["tid"] == 2
        assert (result.good, result.kinds) == (2, {"unescaped_quote": 1})

    def test_unescaped_quote_in_the_pretty_layout(self) -> None:
        event = b'{\n  "ph": "X",\n  "name": "a"b",\n  "pid": 1,\n  "ts": 2.5\n}'
        assert scanned(beside_good(event)).others == [
            {"ph": "X", "name": 'a"b', "pid": 1, "ts": 2.5}
        ]

    def test_missing_closing_quote(self) -> None:
        result = scanned(beside_good(b'{"ph":"X","name":"abc, "pid":1,"ts":2}'))
        assert result.others == [{"ph": "X", "name": "abc", "pid": 1, "ts": 2}]
        assert (result.good, result.kinds) == (2, {"unclosed_string": 1})

    def test_control_characters_and_nul(self) -> None:
        result = scanned(beside_good(named(b"a\0b\tc\nd\x1f")))
        assert result.others[0]["name"] == "a\0b\tc\nd\x1f"
        assert result.kinds == {"nul_byte": 1, "control_character": 1}

    def test_bad_utf8(self) -> None:
        result = scanned(beside_good(named(b"\xff ok \xc3\xbc"), named("ü".encode())))
        assert [event["name"] for event in result.others] == ["\ufffd ok ü", "ü"]
        assert result.kinds == {"bad_utf8": 1}

    def test_lone_surrogates(self) -> None:
        result = scanned(beside_good(named(rb"\ud800x \ud83d\ude00 \udc00 \\ud800")))
        assert result.others[0]["name"] == "\ufffdx 😀 \ufffd \\ud800"
        assert result.kinds == {"lone_surrogate": 1}


class TestNumbers:
    @pytest.mark.parametrize(
        "word",
        [
            "inf",
            "-inf",
            "+inf",
            "Infinity",
            "-Infinity",
            "nan",
            "NaN",
            "-nan",
            "-nan(ind)",
            "nan(snan)",
            "1.#INF",
            "-1.#IND",
            "1.#QNAN",
        ],
    )
    def test_not_a_number(self, word: str) -> None:
        event = f'{{"ph":"X","ts":{word},"dur":1,"args":{{"a":[1,{word}],"b":{word}}}}}'
        result = scanned(beside_good(event.encode()))
        assert result.others == [
            {"ph": "X", "ts": None, "dur": 1, "args": {"a": [1, None], "b": None}}
        ]
        assert (result.good, result.kinds) == (2, {"not_a_number": 1})

    @pytest.mark.parametrize(
        ("word", "right", "kind"),
        [
            ("+1", "1", "bad_number"),
            (".5", "0.5", "bad_number"),
            ("-.5", "-0.5", "bad_number"),
            ("1.", "1", "bad_number"),
            ("007", "7", "bad_number"),
            ("-00.25", "-0.25", "bad_number"),
            ("000", "0", "bad_number"),
            ("0x1F", "31", "bad_number"),
            ("1e999", "null", "absurd_number"),
            ("-1E+400", "null", "absurd_number"),
            ("9" * 400, "null", "absurd_number"),
            ("9" * 5000, "null", "absurd_number"),
            ("True", "true", "bad_value"),
            ("None", "null", "bad_value"),
            ("undefined", "null", "bad_value"),
            ("12abc", "null", "bad_value"),
            ("", "null", "bad_value"),
        ],
    )
    def test_words_for_numbers(self, word: str, right: str, kind: str) -> None:
        event = f'{{"ph":"X","ts":{word},"dur":1614800519473220.125}}'.encode()
        result = scanned(beside_good(event))
        repaired = f'{{"ph":"X","ts":{right},"dur":1614800519473220.125}}'.encode()
        assert result.raw == [GOOD, repaired, GOOD]
        assert result.kinds == {kind: 1}

    def test_hexadecimal_text_is_no_absurd_number(self) -> None:
        result = scanned(beside_good(named(b"0x5e999"), named(b"at 5e999")))
        assert len(result.others) == 2
        assert result.issues == []


class TestStructure:
    @pytest.mark.parametrize(
        ("event", "right", "kind"),
        [
            (b'{"ph":"X","a":1,}', {"ph": "X", "a": 1}, "extra_comma"),
            (b'{"ph":"X","a":[1,,2,]}', {"ph": "X", "a": [1, 2]}, "extra_comma"),
            (b'{"ph":"X" "a":1}', {"ph": "X", "a": 1}, "missing_comma"),
            (b'{"ph":"X","a":[1 2]}', {"ph": "X", "a": [1, 2]}, "missing_comma"),
            (b'{"ph":"X","a":[1,2}', {"ph": "X", "a": [1, 2]}, "unclosed_list"),
            (b'{"ph":"X","args":{"a":1}', {"ph": "X", "args": {"a": 1}}, "unclosed_event"),
            (b'{"ph":"X","args":{"a":1', {"ph": "X", "args": {"a": 1}}, "unclosed_event"),
            (b'{"ph":"X",/* c */"a":1}', {"ph": "X", "a": 1}, "comment"),
            (b'{"ph":"X",// c\n"a":1}', {"ph": "X", "a": 1}, "comment"),
            (b'{ph:"X",ts:1}', {"ph": "X", "ts": 1}, "bare_key"),
            (b'{"ph":"X",\0\0"a":1}', {"ph": "X", "a": 1}, "nul_byte"),
        ],
    )
    def test_repairs(self, event: bytes, right: Any, kind: str) -> None:
        result = scanned(beside_good(event, event))
        assert result.others == [right, right]
        assert (result.good, result.kinds) == (3, {kind: 2})

    @pytest.mark.parametrize(
        "event",
        [
            b'{"ph":"X","name"}',
            b'{"ph":"X",:}',
            b'{"ph":"X","ts" 1,"dur":2}',
            b'{"ph":"X","args":{"a":[1,2',
            b'{"ph":"X","name":"cut here',
            b'{"ph":"X","a":{{"b":1}}}',
            b'{"ph":"X","a":' + b"[" * 100_000 + b"}",
            b'{"ph":"X","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ],
    )
    def test_unreadable_events_cost_no_other(self, event: bytes) -> None:
        result = scanned(beside_good(event, event))
        assert result.raw == [GOOD] * 3
        assert result.kinds == {"unreadable_event": 2}
        assert result.issues[0]["first_position"] == len(in_object(GOOD)) - 1
        assert result.issues[0]["example"].startswith('{"ph":"X",')
        assert (result.closed, result.truncated) == (True, False)

    def test_python_repr(self) -> None:
        result = scanned(beside_good(b"{'ph': 'X', 'name': 'a'}"))
        assert result.raw == [GOOD] * 2
        assert result.kinds == {"python_repr": 1}

    def test_commas_and_junk_between_events(self) -> None:
        result = scanned(b"[," + GOOD + b",," + GOOD + GOOD + b", xyz, " + GOOD + b",]")
        assert result.raw == [GOOD] * 4
        assert result.kinds == {"extra_comma": 3, "missing_comma": 1, "junk": 1}

    def test_a_file_that_starts_again_in_the_middle(self) -> None:
        cut = in_object(GOOD, GOOD)[:-30]
        result = scanned(cut + in_object(GOOD, GOOD, before=b'"schemaVersion":1,'))
        assert result.good == 3

    @pytest.mark.parametrize("tail", [b"\0\0\0\0", b"\n\n", b"]", b" end of file {x", b"\xff\xfe"])
    def test_what_follows_the_end_is_ignored(self, tail: bytes) -> None:
        result = scanned(in_object(GOOD) + tail)
        assert (result.raw, result.closed, result.truncated) == ([GOOD], True, False)
        assert result.kinds.keys() <= {"nul_byte", "trailing_garbage"}


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
