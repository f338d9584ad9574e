"""The one pass over plain events says what the general query says, or leaves them to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer.collectors.importers import plain
from neuron_explorer.collectors.importers.normalise import Normaliser

OP = {
    "ph": "X",
    "cat": "cpu_op",
    "name": "aten::mm",
    "pid": 7,
    "tid": 8,
    "ts": 5317009577879.765,
    "dur": 12.25,
    "args": {
        "External id": 5,
        "Sequence number": 3,
        "Fwd thread id": 0,
        "Input Dims": [[2, 3], []],
        "Input type": ["float", "Scalar"],
        "Input Strides": [[3, 1], []],
        "Concrete Inputs": ["", "1"],
        "Ev Idx": 4,
    },
}
MEMORY = {
    "ph": "i",
    "cat": "cpu_instant_event",
    "s": "t",
    "name": "[memory]",
    "pid": 7,
    "tid": 8,
    "ts": 5317009577879.765,
    "args": {
        "Total Reserved": 0,
        "Total Allocated": 2656,
        "Bytes": -32,
        "Device Id": -1,
        "Device Type": 0,
        "Addr": 94317519183104,
        "finished": False,
        "Ev Idx": 9,
    },
}
FLOW = {"ph": "s", "id": 4, "pid": 7, "tid": 8, "ts": 1.5, "cat": "fwdbwd", "name": "fwdbwd"}
LABEL = {
    "ph": "M",
    "name": "process_name",
    "ts": 1.5,
    "pid": 7,
    "tid": 0,
    "args": {"name": 'é "quoted"\\ \n'},
}
PLAIN = [OP, MEMORY, FLOW | {"bp": "e"}, LABEL]

SURPRISES = {
    "a key of the event": (OP | {"tts": 4}, None),
    "an argument": (OP | {"args": {"grid": [1, 1, 1]}}, None),
    "a null": (OP | {"cat": None}, None),
    "a null beside an unknown key": (OP | {"cat": None, "tts": 4}, None),
    "a nested key": (OP | {"args": {"Ev Idx": {"grid": 1}}}, None),
    "text like a key": (OP | {"name": 'a":b'}, None),
    "no process": ({k: v for k, v in OP.items() if k != "pid"}, None),
    "no process beside an unknown key": (
        {k: v for k, v in OP.items() if k != "pid"} | {"tts": 4},
        None,
    ),
    "a stream that is no number": (OP | {"args": {"stream": "main"}}, None),
    "a correlation that does not fit": (OP | {"args": {"correlation": 2**64 + 1}}, None),
    "a time that is none": (OP | {"ts": "soon"}, None),
    "a key twice": (OP, ('"dur": ', '"dur": 1, "dur": ')),
    "a blank before a colon": (OP, ('"dur":', '"dur" :')),
    "a blank before a colon beside an unknown key": (OP | {"tts": 4}, ('"dur":', '"dur" :')),
    "two blanks before a null": (OP | {"tts": 4}, ('"cat": "cpu_op"', '"cat":  null')),
    "args that are a list": (OP | {"args": [1]}, None),
}


def document(events: list[dict[str, Any]], indent: int | None = None) -> bytes:
    return json.dumps(events, ensure_ascii=False, indent=indent).encode()


@pytest.fixture(scope="module")
def kineto() -> Iterator[Normaliser]:
    normaliser = Normaliser()
    normaliser.expect_kineto()
    yield normaliser
    normaliser.close()


def generally(normaliser: Normaliser, documents: list[bytes]) -> pa.Table:
    table = normaliser._run(normaliser._query, documents)
    assert table is not None
    return table


@pytest.mark.parametrize("indent", [None, 2])
def test_what_pytorch_writes_is_plain(kineto: Normaliser, indent: int | None) -> None:
    documents = [document(PLAIN, indent), document(PLAIN[::-1], indent)]
    table = kineto._proven(documents)
    assert table is not None
    assert table.equals(generally(kineto, documents))
    assert table["alloc_bytes"].to_pylist()[1] == -32
    assert json.loads(table["attributes"][1].as_py()) == {
        "Device Id": -1,
        "Device Type": 0,
        "Addr": 94317519183104,
        "finished": False,
    }
    assert table["label"].to_pylist()[3] == LABEL["args"]["name"]  # type: ignore[index]


@pytest.mark.parametrize("name", SURPRISES)
def test_a_surprise_is_left_to_the_general_query(kineto: Normaliser, name: str) -> None:
    event, change = SURPRISES[name]
    surprise = document([event])
    if change is not None:
        assert change[0].encode() in surprise
        surprise = surprise.replace(change[0].encode(), change[1].encode())
    documents = [document(PLAIN), surprise]
    assert kineto._proven(documents) is None
    table = kineto.table(documents)
    assert table is not None
    assert table.equals(generally(kineto, documents))


values = st.one_of(
    st.integers(-5, 2**70),
    st.text(st.sampled_from('a":\\ \né\u2028,{}[]n'), max_size=6),
    st.booleans(),
    st.none(),
    st.sampled_from([1.5, 0.001, [], [1, "x"], {}]),
)
keys = st.sampled_from([*plain._ARGUMENTS, "grid", 'a"', "a:"])
events = st.builds(
    lambda base, own, args: base | own | {"args": base.get("args", {}) | args},
    st.sampled_from([OP, MEMORY, LABEL]),
    st.dictionaries(st.sampled_from(["id", "s", "bp", "tts", "cat", "dur"]), values, max_size=2),
    st.dictionaries(keys, values, max_size=3),
)


@given(found=st.lists(events, min_size=1, max_size=3), indent=st.sampled_from([None, 1]))
def test_both_say_the_same(
    kineto: Normaliser, found: list[dict[str, Any]], indent: int | None
) -> None:
    documents = [document(found, indent)]
    table = kineto._proven(documents)
    if table is not None:
        general = generally(kineto, documents)
        told, expected = (t["attributes"].to_pylist() for t in (table, general))
        assert [t and json.loads(t) for t in told] == [e and json.loads(e) for e in expected]
        assert table.drop_columns(["attributes"]).equals(general.drop_columns(["attributes"]))


def test_a_capture_of_this_torch_is_plain(kineto: Normaliser, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(record_shapes=True, profile_memory=True) as recorded:
        weight = torch.ones(4, 4, requires_grad=True)
        (torch.ones(4, 4) @ weight).sum().backward()
    file = tmp_path / "capture.json"
    recorded.export_chrome_trace(str(file))
    _, _, listed = file.read_bytes().partition(b'"traceEvents":')
    documents = [listed[: listed.rindex(b"]") + 1].strip()]
    table = kineto._proven(documents)
    assert table is not None
    assert table.equals(generally(kineto, documents))
    assert {"aten::mm", "[memory]", "fwdbwd"} <= set(table["name"].to_pylist())
