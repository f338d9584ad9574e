"""Properties of the scanner that hold for any text, any cut and any damage."""

from __future__ import annotations

import json
from typing import Any

from broken_traces import Scanned, in_object, scanned
from hypothesis import example, given, settings
from hypothesis import strategies as st

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["ph", "name", "ts", "args", "x", "traceEvents", ""]), VALUES
)
HEADERS = st.dictionaries(st.text().filter(lambda key: key != "traceEvents"), VALUES, max_size=4)
PLAIN = st.text(
    st.characters(exclude_characters='"\\', exclude_categories=("Cs", "Cc")), max_size=12
)
EVENTS = st.builds(
    lambda name, ts, shape: {
        "ph": "X",
        "name": name,
        "pid": 1,
        "tid": 7,
        "ts": ts,
        "args": {"id": ts, "dims": shape},
    },
    PLAIN,
    st.integers(0, 10**6),
    st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3),
)
WORDS = """{ } [ ] " , : \\ ' /* 1 null inf 1e999 {"ph":"X"} "name":"a" {"traceEvents":[
"args":{ },{ }]} {"ph": "pid": "\\ud800" """
PIECES = st.sampled_from([*WORDS.encode().split(), *(b"\0", b"\xff", b" ", b"\n", b"\xef\xbb\xbf")])
SOUP = st.lists(PIECES, max_size=60).map(b"".join)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=20)


def dumped(value: object, *, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent).encode()


def read(result: Scanned) -> tuple[Any, ...]:
    return result.raw, result.header, result.closed, result.truncated, result.last_offset


class TestValidJson:
    @given(st.lists(OBJECTS, max_size=5), HEADERS, HEADERS, st.sampled_from([None, 0, 2]))
    def test_equals_json(
        self, events: list[Any], before: Any, after: Any, indent: int | None
    ) -> None:
        document = {**before, "traceEvents": events, **after}
        result = scanned(dumped(document, indent=indent))
        del document["traceEvents"]
        assert result.header == document
        assert result.events == [event for event in events if event]
        assert result.kinds.keys() <= {"empty_event"}
        assert not result.truncated

    @given(st.lists(OBJECTS, max_size=5), st.sampled_from([None, 0, 2]))
    def test_bare_list(self, events: list[Any], indent: int | None) -> None:
        result = scanned(dumped(events, indent=indent))
        assert result.events == [event for event in events if event]

    @given(st.lists(OBJECTS, max_size=5))
    def test_original_bytes(self, events: list[Any]) -> None:
        texts = [dumped(event) for event in events if event]
        assert scanned(in_object(*texts)).raw == texts


class TestCutsBetweenFeeds:
    @given(SOUP, SIZES)
    @example(b'[{"ph":"X"}]', [1])
    def test_soup(self, data: bytes, sizes: list[int]) -> None:
        whole, pieces = scanned(data), scanned(data, sizes=sizes)
        assert read(whole) == read(pieces)
        assert whole.kinds == pieces.kinds

    @given(st.lists(OBJECTS | st.none(), max_size=5), HEADERS, SIZES)
    def test_valid_json(self, events: list[Any], header: Any, sizes: list[int]) -> None:
        data = dumped({**header, "traceEvents": events})
        whole, pieces = scanned(data), scanned(data, sizes=sizes)
        assert read(whole) == read(pieces)
        assert whole.issues == pieces.issues


class TestDamage:
    @settings(max_examples=300)
    @given(st.data(), st.lists(EVENTS, min_size=3, max_size=6))
    def test_one_broken_event_costs_no_other(self, data: st.DataObject, events: list[Any]) -> None:
        texts = [dumped({**event, "pid": pid}) for pid, event in enumerate(events)]
        victim = data.draw(st.integers(0, len(events) - 1))
        text = texts[victim]
        start = data.draw(st.integers(1, len(text) - 2))
        end = data.draw(st.integers(start, min(len(text) - 1, start + 8)))
        texts[victim] = text[:start] + data.draw(st.binary(max_size=4)) + text[end:]
        result = scanned(in_object(*texts))
        others = texts[:victim] + texts[victim + 1 :]
        assert _is_within(others, result.raw)
        assert len(result.raw) + sum(result.kinds.values()) >= len(texts)

    @given(st.lists(EVENTS, min_size=1, max_size=5), st.data())
    def test_cut_anywhere(self, events: list[Any], data: st.DataObject) -> None:
        texts = [dumped(event) for event in events]
        whole = in_object(*texts)
        size = data.draw(st.integers(0, len(whole) - 1))
        result = scanned(whole[:size])
        position, complete = len(b'{"traceEvents":['), []
        for text in texts:
            position += len(text)
            if position <= size:
                complete.append(text)
            position += 1
        assert result.raw == complete
        assert result.truncated == (size > 0)


class TestNothingRaises:
    @given(data=st.binary(max_size=400), unescaped=st.booleans())
    def test_random_bytes(self, *, data: bytes, unescaped: bool) -> None:
        assert isinstance(scanned(data, unescaped=unescaped).events, list)

    @settings(max_examples=500)
    @given(data=SOUP, unescaped=st.booleans())
    def test_soup(self, *, data: bytes, unescaped: bool) -> None:
        result = scanned(data, unescaped=unescaped)
        assert all(isinstance(event, dict) for event in result.events)


def _is_within(some: list[bytes], every: list[bytes]) -> bool:
    """Whether all of `some` are in `every`, in the same order."""
    rest = iter(every)
    return all(item in rest for item in some)
