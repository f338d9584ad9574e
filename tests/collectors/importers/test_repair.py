"""Every kind of broken event, with what is made of it."""

from __future__ import annotations

from typing import Any

import pytest
from broken_traces import GOOD, beside_good, in_object, named, scanned

from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.scanner import EventScanner, UnescapedFileError


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
