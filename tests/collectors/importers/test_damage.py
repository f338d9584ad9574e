"""Any damage to a real trace costs at most what it hit: nothing crashes, nothing is invented."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from neuron_explorer.collectors.importers import import_file
from neuron_explorer.errors import ImportFailedError

WHOLE = (Path(__file__).parents[2] / "data" / "tiny.kineto.json").read_bytes()
TOKENS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"NaN",
    b"-inf",
    b"\0",
    b"\xff",
    b"1e999",
]
TOKENS += [b'"ts": ', b'"traceEvents": [', b"9" * 25, b"\\u00", b"-", b'"dur": -5,']

places = st.integers(0, len(WHOLE) - 1)
cuts = st.tuples(st.just("cut"), places, st.integers(1, 300))
inserts = st.tuples(st.just("insert"), places, st.sampled_from(TOKENS))
inside = st.tuples(
    st.just("insert"),
    st.integers(WHOLE.index(b"traceEvents") + 20, len(WHOLE) - 1),
    st.sampled_from(TOKENS),
)
ends = st.tuples(st.just("end"), places, st.none())


def damaged(damages: list[tuple[str, int, object]]) -> bytes:
    data = bytearray(WHOLE)
    for how, place, what in damages:
        if how == "cut" and isinstance(what, int):
            del data[place : place + what]
        elif how == "insert" and isinstance(what, bytes):
            data[place:place] = what
        elif how == "end":
            del data[place:]
    return bytes(data)


def imported(folder: Path, data: bytes) -> set[str | None] | None:
    """Names of the rows; None where the file was refused."""
    path = folder / "trace.json"
    path.write_bytes(data)
    try:
        import_file(path, folder / "trace.parquet")
    except ImportFailedError:
        return None
    return set(parquet.read_table(folder / "trace.parquet").column("name").to_pylist())


@settings(max_examples=80)
@given(st.lists(st.one_of(cuts, inserts, ends), min_size=1, max_size=6))
def test_damage_never_crashes(damages: list[tuple[str, int, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        imported(Path(folder), damaged(damages))


@settings(max_examples=30)
@given(inside)
def test_one_stray_token_costs_few_events(damage: tuple[str, int, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = imported(Path(folder), WHOLE)
        rest = imported(Path(folder), damaged([damage]))
    assert whole is not None
    assert rest is not None
    assert len(whole - rest) <= 1
