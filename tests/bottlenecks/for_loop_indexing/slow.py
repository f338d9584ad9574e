"""Scores of a batch are smoothed row by row in a Python loop.

analyzer: for_loop_indexing
line: row = scores[index]
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor

import neuron_explorer


def smooth(scores: Tensor) -> Tensor:
    smoothed = torch.empty_like(scores)
    for index in range(scores.shape[0]):
        row = scores[index]
        smoothed[index] = torch.softmax(row, dim=0)
    return smoothed


def main() -> None:
    torch.manual_seed(0)
    scores = torch.randn(512, 256)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            smooth(scores)
            profiler.step()


if __name__ == "__main__":
    main()
