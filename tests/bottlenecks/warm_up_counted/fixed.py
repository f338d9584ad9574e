"""The same model, recorded from its third step on."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.profiler import schedule

import neuron_explorer


class Positions(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.table: Tensor | None = None

    def forward(self, features: Tensor) -> Tensor:
        if self.table is None:
            places = torch.arange(16_384.0)
            rates = torch.logspace(0, -4, self.width)
            self.table = torch.outer(places, rates).sin()
        return features + self.table[: len(features)]


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(Positions(1024), nn.Linear(1024, 512))
    batch, targets = torch.randn(512, 1024), torch.randn(512, 512)
    with neuron_explorer.profile(schedule=schedule(wait=1, warmup=1, active=6)) as profiler:
        for _ in range(8):
            torch.autograd.backward(nn.functional.mse_loss(model(batch), targets))
            profiler.step()


if __name__ == "__main__":
    main()
