"""Real traces against figures computed apart from the product, in plain Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from neuron_explorer.collectors.importers import import_file

SHARED = Path(__file__).parents[4] / "shared"
EXPECTED: dict[str, Any] = (
    json.loads((SHARED / "expected-kineto.json").read_text())
    if (SHARED / "expected-kineto.json").is_file()
    else {}
)
FIGURES = {
    "complete": "count(*) FILTER (layer <> 'meta' OR kind = 'span')",
    "framework_ops": "count(*) FILTER (category IN ('cpu_op', 'Operator'))",
    "hardware": "count(*) FILTER (layer = 'hardware')",
    "work_ns": """coalesce(sum(coalesce(raw_duration_ns, duration_ns))
        FILTER (layer = 'hardware'), 0)::BIGINT""",
    "queues": "count(DISTINCT (device, queue)) FILTER (layer = 'hardware')",
    "launched": "count(*) FILTER (layer = 'hardware' AND link_via = 'correlation')",
    "in_op": """count(*) FILTER (layer = 'hardware' AND link_via = 'correlation'
        AND op_id IS NOT NULL)""",
    "steps": """count(DISTINCT name) FILTER (
        regexp_matches(name, '^ProfilerStep#\\d+$') AND kind <> 'device_annotation')""",
}
BUSY = """
    WITH work AS (
        SELECT device, start_ns, start_ns + coalesce(raw_duration_ns, duration_ns) AS end_ns
        FROM trace WHERE layer = 'hardware'
    ),
    reached AS (
        SELECT *, max(end_ns) OVER (
            PARTITION BY device ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
        FROM work
    )
    SELECT split_part(device, ':', 2),
        sum(greatest(0, end_ns - greatest(start_ns, coalesce(before_ns, start_ns))))::BIGINT
    FROM reached GROUP BY ALL
"""
TOP = """
    SELECT name, sum(coalesce(raw_duration_ns, duration_ns))::BIGINT FROM trace
    WHERE layer = 'hardware' GROUP BY name ORDER BY 2 DESC LIMIT 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.mark.skipif(not EXPECTED, reason=f"no real traces: {SHARED} does not exist")
@pytest.mark.parametrize("name", EXPECTED or ["none"])
def test_figures_agree(name: str, folder: Path) -> None:
    expected = EXPECTED[name]
    output = folder / (name.replace("/", "-") + ".parquet")
    report = import_file(SHARED / "traces" / name, output)
    assert report.events == expected["events"]
    assert not report.truncated
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW trace AS FROM read_parquet('{output}')")
        cursor = connection.execute(f"SELECT {', '.join(FIGURES.values())} FROM trace")
        row = cursor.fetchone()
        assert row is not None
        found = dict(zip(FIGURES, row, strict=True))
        # instants, counters and metadata are rows too, so complete events are a part of these
        assert found.pop("complete") >= expected["complete"]
        assert found == {key: expected[key] for key in found}
        assert dict(connection.execute(BUSY).fetchall()) == expected["busy_ns"]
        if expected["hardware"]:
            assert connection.execute(TOP).fetchone() == (
                expected["top_kernel"],
                expected["top_kernel_ns"],
            )


@pytest.mark.parametrize("name", sorted(p.name for p in (SHARED / "traces/chrome").glob("*")))
def test_generic_chrome_traces_load(name: str, folder: Path) -> None:
    report = import_file(SHARED / "traces/chrome" / name, folder / f"{name}.parquet")
    assert report.events > 0
