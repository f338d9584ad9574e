"""Import of a large Kineto file: time against `json.load` beside it, and peak memory.

    make bench

Every figure comes from a process of its own; time and baseline alternate, and the best of
each counts, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from generator import generate

SOURCE = "kineto/mi300-diffusion-sd35.json.gz"
EVENTS, LARGE_EVENTS = 740_000, 7_000_000
ROUNDS = 3

BASELINE = """
import json, sys
def work(path, output):
    with open(path) as file:
        json.load(file)
"""
IMPORT = """
from pathlib import Path
from neuron_explorer.collectors.importers import import_file
def work(path, output):
    import_file(Path(path), Path(output))
"""
ANALYZE = """
from neuron_explorer.analyzers.runner import run
from neuron_explorer.loading import load
def work(path, output):
    with load(output) as trace:
        run(trace)
"""
MEASURE = """
import json, pathlib, sys, time
begin = time.perf_counter()
work(*sys.argv[1:])
seconds = time.perf_counter() - begin
# not ru_maxrss, which a process takes over from the one that started it
status = pathlib.Path("/proc/self/status").read_text()
peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
print(json.dumps([seconds, peak]))
"""

pytestmark = pytest.mark.bench


def measured(program: str, *paths: Path) -> tuple[float, float]:
    """Seconds and peak MiB of `work(*paths)`, apart from starting Python and its imports."""
    command = [sys.executable, "-c", program + MEASURE, *map(str, paths)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, peak = json.loads(output)
    return float(seconds), float(peak)


@pytest.fixture(scope="module")
def file(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "trace.json"
    generate(traces / SOURCE, path, EVENTS)
    return path


def test_import_against_json_load(file: Path) -> None:
    output = file.with_suffix(".parquet")
    baseline, ours, peaks = [], [], []
    for _ in range(ROUNDS):
        baseline.append(measured(BASELINE, file, output)[0])
        seconds, peak = measured(IMPORT, file, output)
        ours.append(seconds)
        peaks.append(peak)
    ratio = min(ours) / min(baseline)
    sys.stdout.write(
        f"\n{file.stat().st_size / 1e6:.0f} MB, {EVENTS} events: json.load {min(baseline):.2f} s,"
        f" import {min(ours):.2f} s = {ratio:.2f} x, peak {max(peaks):.0f} MiB,"
        f" {output.stat().st_size / 1e6:.1f} MB written\n"
    )
    assert ratio <= 0.5
    assert max(peaks) <= 600


def test_all_analyzers_on_the_result(file: Path) -> None:
    output = file.with_suffix(".parquet")
    if not output.exists():
        measured(IMPORT, file, output)
    runs, baseline = [], []
    for _ in range(ROUNDS):
        baseline.append(measured(BASELINE, file, output)[0])
        runs.append(measured(ANALYZE, file, output))
    seconds, peak = min(runs)[0], max(peak for _, peak in runs)
    sys.stdout.write(
        f"\nall analyzers: {seconds:.2f} s beside a json.load of {min(baseline):.2f} s,"
        f" peak {peak:.0f} MiB\n"
    )
    assert seconds <= 2
    assert peak <= 600


def test_memory_of_a_two_gigabyte_file(traces: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    size = generate(traces / SOURCE, path, LARGE_EVENTS)
    seconds, peak = measured(IMPORT, path, tmp_path / "trace.parquet")
    sys.stdout.write(f"\n{size / 1e9:.2f} GB: {seconds:.1f} s, peak {peak:.0f} MiB\n")
    assert size >= 2e9
    assert peak <= 1000
