"""A forecaster hands its whole series to one LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Forecaster(nn.Module):
    def __init__(self, sensors: int, width: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(sensors, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, series: Tensor) -> Tensor:
        outputs, _ = self.layer(series)
        forecast: Tensor = self.head(outputs[:, -1])
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
