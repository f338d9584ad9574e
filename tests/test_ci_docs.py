"""The workflow in docs/ci.md: what its steps type is run here, but for git and GitHub."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch to capture")

from pairs import one_thread

from neuron_explorer.cli import main

DOCS = Path(__file__).parents[1] / "docs" / "ci.md"
TRAIN = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    model(torch.ones(32, 64)).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture
def workflow() -> dict[Any, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    found: dict[Any, Any] = yaml.safe_load(text)
    return found


def commands(workflow: dict[Any, Any]) -> Iterator[list[str]]:
    """Ours, in order."""
    for step in workflow["jobs"]["diff"]["steps"]:
        for line in step.get("run", "").splitlines():
            if line.startswith("neuron-explorer "):
                yield shlex.split(line)[1:]


def test_the_commands_of_the_workflow_do_what_it_needs(
    workflow: dict[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base and a change that are equal: the gate passes, and there is a comment to post."""
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    monkeypatch.chdir(tmp_path)
    given = list(commands(workflow))
    assert [words[0] for words in given] == ["run", "run", "diff"]
    with one_thread():
        for words in given:
            assert main([word.replace("/tmp/", f"{tmp_path}/") for word in words]) == 0
    assert "### neuron-explorer: " in (tmp_path / "comment.md").read_text("utf-8")
    kept = {path.name for path in tmp_path.glob("*.parquet")}
    assert kept == {"base.parquet", "new.parquet"}


def test_the_workflow_may_comment_and_asks_for_a_python_that_runs_this(
    workflow: dict[Any, Any],
) -> None:
    assert workflow["permissions"]["pull-requests"] == "write"
    setup = next(
        step for step in workflow["jobs"]["diff"]["steps"] if "setup-python" in step.get("uses", "")
    )
    assert tuple(map(int, setup["with"]["python-version"].split("."))) >= (3, 11)
