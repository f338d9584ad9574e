"""A long loop of which the schedule records three steps after its warm-up."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rates = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    features = torch.randn(1024, 1024)
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1)
    with neuron_explorer.profile(schedule=schedule) as profiler:
        for _ in range(6):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(features), features))
            optimizer.step()
            rates.step()
            profiler.step()


if __name__ == "__main__":
    main()
