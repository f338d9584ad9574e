"""Four micro-batches make one step of the optimizer."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    micro_batches = torch.randn(4, 512, 1024)
    with neuron_explorer.profile() as profiler:
        for _ in range(2):
            optimizer.zero_grad()
            for features in micro_batches:
                loss = nn.functional.mse_loss(model(features), features) / len(micro_batches)
                torch.autograd.backward(loss)
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
