"""A small training program, captured in this process, as it is and with something changed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from unittest import mock

from pairs import one_thread

SOURCE = """\
from __future__ import annotations

import sys

import torch
from torch import Tensor, nn

import neuron_explorer


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.widen = nn.Linear(64, 256)
        self.narrow = nn.Linear(256, 64)

    def forward(self, features: Tensor) -> Tensor:
        hidden = self.widen(self.norm(features))
        hidden = hidden * torch.sigmoid(hidden)
        return features + self.narrow(hidden)


def train_step(model: nn.Module, batch: Tensor) -> None:
    model.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()


def main(output: str, steps: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(Block(), Block())
    batch = torch.randn(256, 64)
    with neuron_explorer.profile(output=output) as profiler:
        for _ in range(steps):
            train_step(model, batch)
            profiler.step()


main(sys.argv[1], int(sys.argv[2]))
"""


def capture(folder: Path, source: str = SOURCE, steps: int = 20) -> Path:
    """Run the program from a file in `folder` and return its trace."""
    folder.mkdir(parents=True)
    script, output = folder / "train.py", folder / "trace.parquet"
    script.write_text(source, encoding="utf-8")
    arguments = [str(script), str(output), str(steps)]
    with one_thread(), mock.patch.object(sys, "argv", arguments):
        runpy.run_path(str(script), run_name="program")
    return output
