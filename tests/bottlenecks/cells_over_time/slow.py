"""A forecaster walks over its series with an LSTM cell, one moment after the other.

analyzer: for_loop_indexing
line: hidden, memory = self.cell(series[:, moment], (hidden, memory))
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Forecaster(nn.Module):
    def __init__(self, sensors: int, width: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(sensors, width)
        self.head = nn.Linear(width, 1)

    def forward(self, series: Tensor) -> Tensor:
        hidden = series.new_zeros(len(series), self.cell.hidden_size)
        memory = torch.zeros_like(hidden)
        for moment in range(series.shape[1]):
            hidden, memory = self.cell(series[:, moment], (hidden, memory))
        forecast: Tensor = self.head(hidden)
        return forecast


def main() -> None:
    torch.manual_seed(0)
    model = Forecaster(16, 64)
    series, targets = torch.randn(32, 96, 16), torch.randn(32, 1)
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            model.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(series), targets))
            profiler.step()


if __name__ == "__main__":
    main()
