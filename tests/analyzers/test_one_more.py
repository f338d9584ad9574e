"""One more analyzer is one file and its golden case: the one the README shows, dropped in."""

from __future__ import annotations

import json
from pathlib import Path

from builders import kernel, write_trace
from neuron_explorer.analyzers import analyzers, run
from neuron_explorer.trace import Trace

EXAMPLE = Path(__file__).with_name("slow_kernels.sql")
README = Path(__file__).parents[2] / "analyzers" / "README.md"


def test_a_file_dropped_into_a_folder_runs_with_its_golden_case(tmp_path: Path) -> None:
    (tmp_path / EXAMPLE.name).write_bytes(EXAMPLE.read_bytes())
    golden = tmp_path / "golden"
    golden.mkdir()
    fires = [kernel(0, 3_000_000, name="gemm"), kernel(4_000_000, 10, name="add")]
    for name, rows in (("fires", fires), ("silent", fires[1:])):
        lines = [json.dumps(each) for each in rows]
        (golden / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")

    found = {}
    for case in ("fires", "silent"):
        lines = (golden / f"{case}.jsonl").read_text(encoding="utf-8").splitlines()
        path = write_trace(tmp_path / f"{case}.parquet", map(json.loads, lines))
        with Trace.open([path]) as trace:
            report = run(trace, only=["slow_kernels"], folder=tmp_path)
            found[case] = report.findings
            assert report.ran == ["slow_kernels"]
            assert all(trace.sql(finding.sql).num_rows for finding in report.findings)

    (finding,) = found["fires"]
    assert finding.message == "1 run of gemm took 3.0 ms."
    assert (finding.device_time_ns, finding.share) == (3_000_000, 1.0)
    assert found["silent"] == []
    assert "slow_kernels" not in analyzers()


def test_the_readme_says_how_in_fifteen_lines() -> None:
    _, _, told = README.read_text(encoding="utf-8").partition("## One more analyzer\n")
    told = told.partition("\n## ")[0].strip()
    assert f"tests/analyzers/{EXAMPLE.name}" in told
    assert len(told.splitlines()) <= 15
