"""A trainer keeps a running average of its weights as one vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

import neuron_explorer


@torch.no_grad()
def update(average: Tensor, model: nn.Module) -> None:
    average.lerp_(parameters_to_vector(model.parameters()), 0.001)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(48, 48) for _ in range(120)])
    average = parameters_to_vector(model.parameters()).detach()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    features, targets = torch.randn(32, 48), torch.randn(32, 48)
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(features), targets))
            optimizer.step()
            update(average, model)
            profiler.step()


if __name__ == "__main__":
    main()
