from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "neuron_explorer", *arguments],
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """The folder in which the demo ran, and its findings."""
    folder = tmp_path_factory.mktemp("demo")
    done = demo(folder, "demo", "--json")
    assert done.returncode == 0, done.stderr
    assert "[W" not in done.stderr
    return folder, json.loads(done.stdout)


def test_the_demo_leaves_the_trace_and_nothing_else(
    shown: tuple[Path, dict[str, object]],
) -> None:
    folder, _ = shown
    assert sorted(path.name for path in folder.iterdir()) == ["cache", "trace.parquet"]


def query(folder: Path, text: str) -> list[list[object]]:
    return query_of(folder, "trace.parquet", text)


def query_of(folder: Path, trace: str, text: str) -> list[list[object]]:
    done = demo(folder, "sql", trace, text, "--json")
    assert done.returncode == 0, done.stderr
    rows: list[list[object]] = json.loads(done.stdout)["rows"]
    return rows


def test_the_demo_has_steps_shapes_and_source_lines(
    shown: tuple[Path, dict[str, object]],
) -> None:
    folder, _ = shown
    assert query(folder, "SELECT count(*) FROM steps") == [[3]]
    (facts,) = query(
        folder,
        "SELECT count(*) FILTER (input_shapes IS NOT NULL) > 100,"
        " count(*) FILTER (source_function = 'hand_written_gelu') > 10,"
        " count(*) FILTER (name = 'aten::item') >= 3 FROM ops",
    )
    assert facts == [True, True, True]


def test_the_planted_chain_is_found(shown: tuple[Path, dict[str, object]]) -> None:
    _, told = shown
    findings = told["findings"]
    assert isinstance(findings, list)
    places = {(f["analyzer"], Path(f["source_file"] or "").name) for f in findings}
    assert ("compile_opportunities", "demo.py") in places


def test_the_planted_item_is_found_at_its_line(
    shown: tuple[Path, dict[str, object]],
) -> None:
    _, told = shown
    assert isinstance(told["findings"], list)
    (sync,) = [f for f in told["findings"] if f["analyzer"] == "host_syncs"]
    assert ".item()" in sync["source_text"]


def test_the_demo_overwrites_nothing_but_a_demo(tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").write_text("mine", "utf-8")
    done = demo(tmp_path, "demo", "-o", "mine.parquet")
    assert done.returncode == 2
    assert "mine.parquet is no trace of a demo" in done.stderr
    assert (tmp_path / "mine.parquet").read_text("utf-8") == "mine"


def test_run_keeps_output_and_exit_code_and_says_what_next(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, torch\nprint(torch.ones(2).sum().item(), sys.argv[1:])\nsys.exit(5)\n"
    )
    done = demo(tmp_path, "run", "-o", "run.parquet", "train.py", "--epochs", "1", "-q")
    assert (done.returncode, done.stdout) == (5, "2.0 ['--epochs', '1', '-q']\n")
    assert "wrote run.parquet; next: neuron-explorer analyze run.parquet" in done.stderr
    assert query_of(tmp_path, "run.parquet", "SELECT count(*) > 0 FROM ops") == [[True]]


def test_run_without_a_script_says_so(tmp_path: Path) -> None:
    done = demo(tmp_path, "run", "missing.py")
    assert done.returncode == 2
    assert done.stderr == (
        "neuron-explorer: missing.py is no script\nhint: name a file, or -m MODULE\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_without_torch_the_demo_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None;"
        "from neuron_explorer.cli import main; sys.exit(main(['demo']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "neuron-explorer: recording needs torch, which is not installed\n"
        "hint: pip install 'neuron-explorer[torch]'\n"
    )
    assert list(tmp_path.iterdir()) == []
