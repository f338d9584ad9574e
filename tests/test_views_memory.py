"""The views `lifetimes` and `device_memory`: what memory was alive when, and how much there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import Row, kernel, op, row, write_trace
from neuron_explorer.trace import Trace


def taken(at: int, size: int, address: int, **columns: object) -> Row:
    kind = "alloc" if size > 0 else "free"
    usual: dict[str, object] = {"name": "[memory]", "device": "cpu"}
    said = {"attributes": {"Addr": address}, "alloc_bytes": size}
    return row("memory", kind, at, 0, **(usual | said | columns))


def ask(folder: Path, rows: list[Row], query: str, **metadata: object) -> list[dict[str, Any]]:
    with Trace.open([write_trace(folder / "t.parquet", rows, metadata)]) as trace:
        return trace.rows(query)


def test_a_free_at_its_address_ends_a_life(tmp_path: Path) -> None:
    rows = [
        taken(10, 100, 1),
        taken(20, 50, 2),
        taken(30, -100, 1),
        # the free of the second was not recorded
        taken(40, 70, 2),
    ]
    columns = "start_ns, alloc_bytes, freed_ns, freeing_event_id, at_peak"
    query = f"SELECT {columns} FROM lifetimes ORDER BY start_ns"
    assert [tuple(found.values()) for found in ask(tmp_path, rows, query)] == [
        (10, 100, 30, 2, True),
        (20, 50, None, None, True),
        (40, 70, None, None, False),
    ]


def test_devices_have_peaks_and_addresses_of_their_own(tmp_path: Path) -> None:
    rows = [
        taken(10, 100, 1),
        taken(20, 10, 1, device="cuda:0", device_allocated=500),
        taken(30, -100, 1),
        taken(40, 20, 2, device="cuda:0", device_allocated=520),
    ]
    query = "SELECT device, freed_ns, at_peak FROM lifetimes ORDER BY start_ns"
    assert [tuple(found.values()) for found in ask(tmp_path, rows, query)] == [
        ("cpu", 30, True),
        ("cuda:0", None, True),
        ("cuda:0", None, True),
    ]


def test_op_module_and_line_come_along(tmp_path: Path) -> None:
    place = {"module": "layers.0", "source_file": "m.py", "source_line": 7, "phase": "forward"}
    rows = [op(0, 90, name="aten::mm"), taken(10, 100, 1, op_id=0, step=3, **place)]
    (found,) = ask(tmp_path, rows, "SELECT * FROM lifetimes")
    assert found.items() >= (place | {"op_name": "aten::mm", "op_ns": 90, "step": 3}).items()


def test_without_addresses_nothing_is_claimed(tmp_path: Path) -> None:
    assert ask(tmp_path, [taken(10, 100, 1, attributes={})], "SELECT * FROM lifetimes") == []


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=20))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_alive_at_the_peak_adds_up_to_it(
    tmp_path: Path, turns: list[tuple[int, int]]
) -> None:
    """Each turn frees what lies at an address, or takes memory there where nothing does."""
    held: dict[int, int] = {}
    rows = []
    for at, (address, size) in enumerate(turns):
        change = -held.pop(address) if address in held else size
        if change > 0:
            held[address] = change
        rows.append(taken(at, change, address))
    sums = "SELECT max(peak_bytes) AS peak FROM allocations"
    alive = "SELECT sum(alloc_bytes)::BIGINT AS alive FROM lifetimes WHERE at_peak"
    (found,) = ask(tmp_path, rows, f"SELECT * FROM ({sums}), ({alive})")
    assert found["peak"] == found["alive"]


def test_memory_of_a_device_as_its_driver_told(tmp_path: Path) -> None:
    rows = [kernel(0, 5, device="cuda:1"), kernel(0, 5), taken(1, 8, 1), taken(2, 8, 2)]
    told = [{"id": 1, "name": "x", "totalGlobalMem": 80_000}, {"id": 2, "totalGlobalMem": 1}]
    query = "SELECT device, memory_bytes FROM device_memory"
    assert ask(tmp_path, rows, query, devices=told) == [
        {"device": "cuda:0", "memory_bytes": None},
        {"device": "cuda:1", "memory_bytes": 80_000},
    ]
