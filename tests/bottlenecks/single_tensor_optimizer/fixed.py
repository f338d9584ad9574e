"""A small classifier whose Adam updates all parameters in one op."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(24)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    features, targets = torch.randn(32, 128), torch.randn(32, 128)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            optimizer.zero_grad()
            loss: torch.Tensor = nn.functional.mse_loss(model(features), targets)
            torch.autograd.backward(loss)
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
