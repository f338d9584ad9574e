"""A server that blends the frames of a clip with a new tensor for each of them.

analyzer: memory_churn
line: weighted = frame * weight
gain: not measured: the analyzer promises no time
"""

from __future__ import annotations

import torch
from torch import Tensor

import neuron_explorer


def blend(clip: Tensor, weights: Tensor) -> Tensor:
    total = torch.zeros_like(clip[0])
    for frame, weight in zip(clip, weights, strict=True):
        weighted = frame * weight
        total += weighted
    return total


def main() -> None:
    torch.manual_seed(0)
    clip = torch.rand(16, 3, 512, 512)
    weights = torch.softmax(torch.arange(16.0), dim=0)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            blend(clip, weights)
            profiler.step()


if __name__ == "__main__":
    main()
