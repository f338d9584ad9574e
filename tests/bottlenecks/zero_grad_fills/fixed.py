"""A trainer that drops its gradients before each step."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    features, targets = torch.randn(4, 1024), torch.randn(4, 1024)
    torch.autograd.backward(nn.functional.mse_loss(model(features), targets))
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            loss: torch.Tensor = nn.functional.mse_loss(model(features), targets)
            torch.autograd.backward(loss)
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
