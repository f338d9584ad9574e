"""Which forward op a backward op belongs to, where threads count their ops each for itself."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyarrow import parquet

from neuron_explorer.collectors.importers import import_file

Row = dict[str, Any]


def op(name: str, ts: float, tid: int, sequence: int, forward_thread: int = 0) -> Row:
    args = {"Sequence number": sequence, "Fwd thread id": forward_thread}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": 1} | {
        "args": args
    }


def pairs(events: list[Row]) -> list[tuple[str, str | None]]:
    """Names of each backward op and of the forward op that it was linked to."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        import_file(path, Path(folder, "trace.parquet"))
        rows = parquet.read_table(Path(folder, "trace.parquet")).to_pylist()
    names = {row["event_id"]: row["name"] for row in rows}
    return [
        (row["name"], names.get(row["forward_id"])) for row in rows if "Backward" in row["name"]
    ]


OPS = ("mul", "add", "relu", "sin", "addmm", "native_layer_norm")


def threads(seed: int) -> tuple[list[Row], list[str]]:
    """A process of threads that run ops of their own names, numbered from anywhere at random.

    Returns:
        Its events, forwards and then backwards; and the forward that each backward asks for.
    """
    chance = random.Random(seed)
    lengths = [chance.randint(1, 5) for _ in range(chance.randint(1, 4))]
    first = [chance.randint(0, 3) for _ in lengths]
    tids = chance.sample(range(100, 120), len(lengths))
    forward = [
        (thread, first[thread] + place, f"{chance.choice(OPS)}_t{thread}")
        for thread, length in enumerate(lengths)
        for place in range(length)
    ]
    # threads begin in the order of torch's numbers, and run at once
    ran = sorted(forward, key=lambda row: (row[1] - first[row[0]], row[0]))
    events = [op(f"aten::{name}", 2 * at, tids[t], s) for at, (t, s, name) in enumerate(ran)]
    asked = chance.sample(forward, len(forward))
    for at, (thread, sequence, name) in enumerate(asked):
        backward = f"{name.title().replace('_', '')}Backward0"
        events.append(op(backward, 1000 + 2 * at, 99, sequence, thread + 1))
    return [event | {"pid": seed} for event in events], [f"aten::{name}" for _, _, name in asked]


def test_a_backward_op_is_linked_to_its_own_threads_forward() -> None:
    # one process a case: processes have nothing to do with each other
    cases = [threads(seed) for seed in range(1, 200)]
    found = pairs([event for events, _ in cases for event in events])
    assert [forward for _, forward in found] == [name for _, names in cases for name in names]


def test_what_a_backward_recomputes_does_not_take_the_place_of_a_forward() -> None:
    events = [
        op("aten::mul", 0, 10, 5),
        op("aten::exp", 2, 10, 6),
        # a forward that runs again in the backward's thread, which counts from 5 as well
        op("aten::sin", 50, 20, 5),
        op("SinBackward0", 60, 20, 5, 2),
        op("ExpBackward0", 70, 20, 6, 1),
        op("MulBackward0", 80, 20, 5, 1),
    ]
    assert dict(pairs(events)) == {
        "SinBackward0": "aten::sin",
        "ExpBackward0": "aten::exp",
        "MulBackward0": "aten::mul",
    }


def test_equal_threads_have_their_numbers_in_the_order_they_came() -> None:
    events = [op(f"aten::mul_{tid}", at, tid, 7) for at, tid in enumerate((30, 10, 20))]
    events += [op(f"Gone{n}Backward0", 100 + n, 40, 7, n) for n in (3, 1, 2)]
    assert pairs(events) == [
        ("Gone3Backward0", "aten::mul_20"),
        ("Gone1Backward0", "aten::mul_30"),
        ("Gone2Backward0", "aten::mul_10"),
    ]


def test_a_forward_that_is_not_recorded_in_its_thread_is_unknown() -> None:
    events = [op("aten::mul", 0, 10, 5), op("aten::exp", 2, 10, 6), op("aten::sin", 4, 20, 9)]
    events += [op("MulBackward0", 60, 30, 5, 1), op("LostBackward0", 65, 30, 9, 1)]
    assert dict(pairs(events)) == {"MulBackward0": "aten::mul", "LostBackward0": None}
