"""A training loop that collects garbage after every step, with many objects alive.

analyzer: collector_pauses
line: gc.collect()
gain: verifiable
runs: make score
"""

from __future__ import annotations

import gc

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    vocabulary = [{"token": str(number)} for number in range(200_000)]
    model = nn.Linear(len(vocabulary) // 200, 256)
    features = torch.randn(16_384, model.in_features)
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            model(features).sum().backward()
            gc.collect()
            profiler.step()


if __name__ == "__main__":
    main()
