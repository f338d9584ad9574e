"""The view `copies`: which way each goes, of what memory, and what hides it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import Row, kernel, op, write_trace
from neuron_explorer.trace import Trace


def copy(start_ns: int, duration_ns: int, name: str, **columns: object) -> Row:
    queue = {"queue": "stream 8"} | columns
    return kernel(start_ns, duration_ns, kind="memcpy", name=name, **queue)


def ask(folder: Path, rows: list[Row], columns: str) -> list[tuple[Any, ...]]:
    with Trace.open([write_trace(folder / "t.parquet", rows)]) as trace:
        return trace.answer(f"SELECT {columns} FROM copies ORDER BY start_ns").rows


@pytest.mark.parametrize(
    ("name", "direction", "pageable"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "to the device", True),
        ("Memcpy HtoD (Pinned -> Device)", "to the device", False),
        ("Memcpy DtoH (Device -> Pageable)", "from the device", True),
        ("Memcpy PtoP (Device -> Device)", "between devices", False),
        ("CopyHostToDevice", "to the device", False),
        ("CopyDeviceToHost", "from the device", False),
        ("copied somewhere", None, False),
    ],
)
def test_direction_and_memory_by_name(
    tmp_path: Path, name: str, direction: str | None, *, pageable: bool
) -> None:
    found = ask(tmp_path, [kernel(0, 5), copy(10, 5, name)], "direction, pageable")
    assert found == [(direction, pageable)]


def test_copies_within_a_device_are_none(tmp_path: Path) -> None:
    assert ask(tmp_path, [copy(0, 5, "Memcpy DtoD (Device -> Device)")], "event_id") == []


def test_a_copy_before_the_first_kernel_sets_up(tmp_path: Path) -> None:
    rows = [
        copy(0, 5, "Memcpy HtoD (Pinned -> Device)"),
        kernel(10, 5),
        copy(20, 5, "Memcpy HtoD (Pinned -> Device)"),
    ]
    assert ask(tmp_path, rows, "start_ns, warmed") == [(0, False), (20, True)]


def test_only_what_no_kernel_covers_is_exposed(tmp_path: Path) -> None:
    rows = [
        op(0, 9, name="aten::to"),
        kernel(100, 50),
        copy(120, 50, "Memcpy HtoD (Pinned -> Device)", op_id=0, write_bytes=64),
    ]
    assert ask(tmp_path, rows, "duration_ns, exposed_ns, bytes, op_name") == [
        (50, 20, 64, "aten::to")
    ]
