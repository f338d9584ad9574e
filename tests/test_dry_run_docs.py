"""What the documentation of the dry run says, done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dryrun_scripts import run_code

ROOT = Path(__file__).parents[1]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "dry-run.md"


def test_every_view_and_analyzer_it_names_is_there() -> None:
    for name in ("modelled_work", "modelled_steps", "modelled_gains", "fallbacks", "compilations"):
        assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
        assert (ROOT / "neuron_explorer" / "views" / f"{name}.sql").is_file()
    for name in ("dry_run_summary", "compile_gain", "modelled_waits", "recompilations"):
        assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
        assert (ROOT / "analyzers" / f"{name}.sql").is_file()


@pytest.mark.torch
@pytest.mark.parametrize("page", [README, PAGE], ids=["readme", "page"])
def test_the_lines_it_shows_run(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (code,) = re.findall(
        r"    (neuron_explorer\.dryrun\(.*?\n)\n", page.read_text(encoding="utf-8"), re.DOTALL
    )
    lines = [line.removeprefix("    ") for line in code.splitlines()]
    before = ["import neuron_explorer, torch", "model = torch.nn.Linear(4, 4)"]
    before += [
        "def train_step(model):",
        "    model(torch.ones(2, 4, device='neuron')).sum().item()",
    ]
    done = run_code("\n".join([*before, *lines]), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "trace.parquet").is_file()
