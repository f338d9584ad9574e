"""A two-layer LSTM reads whole sequences in one call."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(512, 512, num_layers=2, batch_first=True)
    head = nn.Linear(512, 512)
    sequences = torch.randn(128, 12, 512)
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for _ in range(3):
            states, _ = lstm(sequences)
            head(states)
            profiler.step()


if __name__ == "__main__":
    main()
