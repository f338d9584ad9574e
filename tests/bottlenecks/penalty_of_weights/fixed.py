"""A regression whose optimizer decays the weights: the same gradient."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(80)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=2e-4, fused=True)
    features, targets = torch.randn(256, 64), torch.randn(256, 64)
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(features), targets)
            torch.autograd.backward(loss)
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
