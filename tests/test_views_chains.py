"""The view `chains`: what is one, what ends it, and the bytes that fusing it saves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import Row, kernel, op, write_trace
from neuron_explorer.trace import Trace

SHAPE = [1, 77, 1280]
TENSOR = 77 * 1280 * 2


def fusable(place: int, **columns: object) -> list[Row]:
    """An op that reads one bf16 tensor of SHAPE and makes another, and its one kernel."""
    of_op: dict[str, object] = {
        "name": ("aten::mul", "aten::add")[place % 2],
        "family": "elementwise",
        "input_shapes": [SHAPE, []],
        "input_dtypes": ["c10::BFloat16", "Scalar"],
        "output_shapes": [SHAPE],
        "source_file": "model.py",
        "source_line": 10 + place,
    }
    of_kernel: dict[str, object] = {"op_id": 2 * place, "read_bytes": TENSOR, "write_bytes": TENSOR}
    shared = ("source_file", "source_line", "step", "compiled")
    of_op |= {key: value for key, value in columns.items() if key not in of_kernel}
    of_kernel |= {key: value for key, value in columns.items() if key in of_kernel}
    of_kernel |= {key: of_op[key] for key in shared if key in of_op}
    return [op(place * 100, 50, **of_op), kernel(1000 + place * 10, 8, **of_kernel)]


def chained(*units: list[Row]) -> list[Row]:
    return [row for unit in units for row in unit]


def chains(folder: Path, rows: Sequence[Row]) -> list[dict[str, Any]]:
    trace = Trace.open([write_trace(folder / "t.parquet", rows)])
    found: list[dict[str, Any]] = trace.sql("SELECT * FROM chains").to_pylist()
    return found


def test_run_of_elementwise_ops_is_one_chain(tmp_path: Path) -> None:
    rows = chained(*(fusable(place) for place in range(3)))
    (found,) = chains(tmp_path, rows)
    assert found == found | {
        "ops": 3,
        "launches": 3,
        "first_event_id": 1,
        "last_event_id": 5,
        "event_ids": [1, 3, 5],
        "op_ids": [0, 2, 4],
        "device_time_ns": 24,
        "bytes": 6 * TENSOR,
        "bytes_saved": 4 * TENSOR,
        "source_file": "model.py",
        "source_line": 10,
        "first_line": 10,
        "last_line": 12,
        "compiled": False,
        "breaks": "end of queue",
    }


def test_one_op_is_no_chain(tmp_path: Path) -> None:
    assert chains(tmp_path, fusable(0)) == []


def test_op_with_several_kernels_counts_once(tmp_path: Path) -> None:
    rows = chained(fusable(0), fusable(1))
    rows += [kernel(1014, 2, op_id=2, read_bytes=10, write_bytes=10)]
    (found,) = chains(tmp_path, rows)
    assert (found["ops"], found["launches"], found["event_ids"]) == (2, 3, [1, 3, 4])
    assert found["bytes"] == 4 * TENSOR + 20


@pytest.mark.parametrize(
    ("columns", "breaks"),
    [
        ({"family": "matmul", "name": "aten::mm"}, "matmul"),
        ({"family": None}, "unknown family"),
        ({"input_shapes": [[5, 5], []]}, "other data"),
        ({"input_dtypes": ["float", "Scalar"]}, "other data"),
        ({"compiled": True}, "compiled"),
        ({"op_id": None}, "no op"),
        ({"step": 7}, "end of step"),
        ({"name": "aten::add"}, "same op again"),
        ({"name": "_C::rms_norm", "family": "norm"}, "op outside aten"),
    ],
)
def test_what_ends_a_chain(tmp_path: Path, columns: dict[str, object], breaks: str) -> None:
    (found,) = chains(tmp_path, chained(fusable(0), fusable(1), fusable(2, **columns)))
    assert (found["ops"], found["breaks"]) == (2, breaks)


def test_copy_to_the_host_ends_a_chain(tmp_path: Path) -> None:
    read = op(150, 5, name="aten::_local_scalar_dense", family="copy")
    copy = kernel(1015, 2, kind="memcpy", name="Memcpy DtoH (Device -> Pinned)", op_id=4)
    rows = [*chained(fusable(0), fusable(1)), read, copy]
    (found,) = chains(tmp_path, rows)
    assert (found["breaks"], found["next_op"]) == ("host copy", "aten::_local_scalar_dense")


def test_queues_do_not_mix(tmp_path: Path) -> None:
    rows = chained(fusable(0), fusable(1))
    rows[3] = {**rows[3], "queue": "stream 8"}
    assert chains(tmp_path, rows) == []


def test_cast_may_change_the_dtype(tmp_path: Path) -> None:
    cast = fusable(0, family="cast", name="aten::_to_copy")
    rows = chained(cast, fusable(1, input_dtypes=["float", "Scalar"]))
    assert [chain["families"] for chain in chains(tmp_path, rows)] == [["cast", "elementwise"]]


def test_input_in_a_list_of_tensors_counts(tmp_path: Path) -> None:
    cat = fusable(
        1, family="cat", input_shapes=[[SHAPE, SHAPE], []], input_dtypes=["c10::BFloat16", ""]
    )
    assert len(chains(tmp_path, chained(fusable(0), cat))) == 1


def test_links_say_what_each_op_would_not_move(tmp_path: Path) -> None:
    rows = chained(fusable(0, write_bytes=70), fusable(1, read_bytes=50), fusable(2))
    trace = Trace.open([write_trace(tmp_path / "t.parquet", rows)])
    links = trace.sql("SELECT * FROM chain_links ORDER BY place").to_pylist()
    assert [(link["producer_id"], link["consumer_id"]) for link in links] == [(0, 2), (2, 4)]
    assert links[0] == links[0] | {
        "place": 2,
        "producer": "aten::mul",
        "consumer": "aten::add",
        "via": "shape",
        "written_bytes": 70,
        "overwritten_bytes": 0,
        "read_back_bytes": 50,
    }


def test_a_padding_op_fills_what_it_then_copies_over(tmp_path: Path) -> None:
    wide, narrow = [888, 3072], [888, 2880]
    fill = {"name": "aten::fill_", "family": "fill", "read_bytes": 0, "write_bytes": 96}
    copy = {"name": "aten::copy_", "family": "copy", "read_bytes": 90, "write_bytes": 90}
    fill |= {"input_shapes": [wide, []], "output_shapes": [wide], "parent_id": 4}
    copy |= {"input_shapes": [narrow, narrow, []], "output_shapes": [narrow], "parent_id": 4}
    pad = op(0, 300, name="aten::constant_pad_nd", input_shapes=[narrow, [], []])
    rows = [*chained(fusable(0, **fill), fusable(1, **copy)), pad]
    trace = Trace.open([write_trace(tmp_path / "t.parquet", rows)])
    (link,) = trace.sql("SELECT * FROM chain_links").to_pylist()
    assert (link["via"], link["written_bytes"], link["overwritten_bytes"]) == ("pad", 90, 90)
    assert link["read_back_bytes"] == 0
    (chain,) = trace.sql("SELECT * FROM chains").to_pylist()
    assert (chain["ops"], chain["bytes"], chain["bytes_saved"]) == (2, 276, 90)
    apart = [*rows[:2], {**rows[2], "parent_id": None}, *rows[3:]]
    assert chains(tmp_path, apart) == []


def test_an_op_that_reads_nothing_takes_nothing(tmp_path: Path) -> None:
    rows = chained(fusable(0), fusable(1, name="aten::fill_", family="fill", read_bytes=0))
    assert chains(tmp_path, rows) == []


def test_a_scalar_result_links_nothing(tmp_path: Path) -> None:
    rows = chained(fusable(0, output_shapes=[[]]), fusable(1))
    assert chains(tmp_path, rows) == []


def test_lines_of_several_files_have_no_range(tmp_path: Path) -> None:
    rows = chained(fusable(0), fusable(1, source_file="other.py"))
    (found,) = chains(tmp_path, rows)
    assert (found["source_file"], found["source_line"]) == ("model.py", 10)
    assert (found["first_line"], found["last_line"]) == (None, None)


@pytest.mark.parametrize(("via", "one"), [("function", False), ("call", True)])
def test_two_first_lines_are_two_functions(tmp_path: Path, via: str, one: bool) -> None:  # noqa: FBT001
    named = {"source_function": "forward", "source_via": via}
    rows = [
        {**each, **named, "source_line": line}
        for line, unit in ((10, fusable(0)), (20, fusable(1)))
        for each in unit
    ]
    (found,) = chains(tmp_path, rows)
    assert found["in_one_function"] is one


def test_unknown_bytes_stay_unknown(tmp_path: Path) -> None:
    (found,) = chains(tmp_path, chained(fusable(0), fusable(1, read_bytes=None)))
    assert found["bytes"] is None


@pytest.mark.parametrize("unknown", [{"read_bytes": None}, {"write_bytes": None}])
def test_a_link_of_unknown_bytes_says_so(tmp_path: Path, unknown: dict[str, object]) -> None:
    first, second = (unknown, {}) if "write_bytes" in unknown else ({}, unknown)
    rows = chained(fusable(0, **first), fusable(1, **second))
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        (link,) = trace.sql("SELECT read_back_bytes FROM chain_links").to_pylist()
    assert link["read_back_bytes"] is None


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**9)), min_size=2, max_size=8))
def test_no_more_is_saved_than_lies_between_first_input_and_last_output(
    tmp_path_factory: pytest.TempPathFactory, traffic: list[tuple[int, int]]
) -> None:
    rows = chained(
        *(
            fusable(place, read_bytes=read, write_bytes=write)
            for place, (read, write) in enumerate(traffic)
        )
    )
    (found,) = chains(tmp_path_factory.mktemp("saved"), rows)
    assert 0 <= found["bytes_saved"] <= found["bytes"] - traffic[0][0] - traffic[-1][1]


@pytest.mark.parametrize("order", [1, -1])
def test_an_op_is_of_the_family_of_its_longest_unit(tmp_path: Path, order: int) -> None:
    """A convolution's gradient begins with a memset, which is a fill of its own."""
    units = [
        kernel(1000, 4, kind="memset", name="Memset (Device)", family="fill", op_id=0),
        kernel(1010, 90, name="wgrad", family="convolution", op_id=0),
    ][::order]
    rows = [op(0, 50, name="aten::convolution_backward", family="convolution"), *units]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        assert trace.answer("SELECT launches, family, fusable FROM queue_ops").rows == [
            (2, "convolution", False)
        ]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=6))
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_one_op_of_a_chain_stands_for_all(tmp_path: Path, durations: list[int]) -> None:
    """The longest, and the first of those; its largest outer input is read once in any case."""
    rows: list[Row] = []
    for place, duration in enumerate(durations):
        its_op, its_kernel = fusable(place)
        rows += [its_op, dict(its_kernel) | {"duration_ns": duration}]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        found = trace.rows("SELECT * FROM chain_ops ORDER BY place")
    longest = durations.index(max(durations))
    assert [row["disappears"] for row in found] == [
        place != longest for place in range(len(durations))
    ]
    # every op but the first reads what the one before wrote, so only the first has an outer input
    assert [row["most_bytes"] for row in found] == [row["bytes_saved"] for row in found]
    assert sum(row["bytes_saved"] for row in found) == 2 * TENSOR * (len(durations) - 1)
