"""Collectives of host threads find the op that asked for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from neuron_explorer.collectors.importers import import_file
from neuron_explorer.collectors.linking.collectives import kind_of

Row = dict[str, Any]


def slice_of(category: str, name: str, ts: float, shapes: Any = None, tid: int = 1) -> Row:
    args = {} if shapes is None else {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}
    event: Row = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": ts}
    return event | {"dur": 2, "args": args}


def asks(name: str, ts: float, shapes: Any = None) -> Row:
    return slice_of("cpu_op", f"c10d::{name}", ts, shapes)


def ran(name: str, ts: float, shapes: Any = None) -> Row:
    return slice_of("user_annotation", f"gloo:{name}", ts, shapes, tid=9)


def linked(folder: Path, events: list[Row]) -> list[tuple[float, float | None]]:
    """(when a collective ran, when its op began), both in us."""
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    import_file(path, folder / "trace.parquet")
    rows = parquet.read_table(folder / "trace.parquet").to_pylist()
    found = []
    for row in rows:
        if row["kind"] == "collective":
            assert row["layer"] == "host"
            asked = None if row["op_id"] is None else rows[row["op_id"]]["start_ns"] / 1000
            assert row["link_via"] == (None if asked is None else "order")
            found.append((row["start_ns"] / 1000, asked))
    return sorted(found)


def test_each_takes_the_oldest_that_waits(tmp_path: Path) -> None:
    events = [asks("allreduce_", 0, [[[4]]]), asks("allreduce_", 5, [[[4]]])]
    events += [ran("all_reduce", 6, [[4]]), ran("all_reduce", 9, [[4]])]
    assert linked(tmp_path, events) == [(6, 0), (9, 5)]


def test_kind_and_shape_must_agree(tmp_path: Path) -> None:
    events = [asks("broadcast_", 0, [[[4]]]), asks("allreduce_", 1, [[[8]]])]
    events += [asks("allreduce_", 2, [[[4]]]), ran("all_reduce", 9, [[4]])]
    assert linked(tmp_path, events) == [(9, 2)]


def test_what_began_before_every_op_has_none(tmp_path: Path) -> None:
    events = [ran("all_reduce", 0, [[4]]), asks("allreduce_", 3, [[[4]]])]
    events += [ran("all_reduce", 6, [[4]])]
    assert linked(tmp_path, events) == [(0, None), (6, 3)]


def test_without_shapes_the_order_counts(tmp_path: Path) -> None:
    events = [asks("_allgather_base_", 0), asks("allgather_", 1)]
    events += [ran("all_gather", 4), ran("all_gather", 6), ran("barrier", 8)]
    assert linked(tmp_path, events) == [(4, 0), (6, 1), (8, None)]


@pytest.mark.parametrize(
    ("kind", "names"),
    {
        "allreduce": "gloo:all_reduce c10d::allreduce_ c10d::allreduce_coalesced_",
        "allgather": "gloo:all_gather c10d::allgather_ c10d::_allgather_base_"
        " c10d::allgather_into_tensor_coalesced_",
        "alltoall": "gloo:all_to_all c10d::alltoall_base_ c10d::alltoall_",
        "reducescatter": "gloo:reduce_scatter c10d::_reduce_scatter_base_ c10d::reduce_scatter_",
        "recv": "gloo:recv c10d::recv_ c10d::recv_any_source_",
        "broadcast": "gloo:broadcast c10d::broadcast_ mpi:broadcast",
    }.items(),
)
def test_names_of_one_kind(kind: str, names: str) -> None:
    assert {kind_of(name) for name in names.split()} == {kind}
