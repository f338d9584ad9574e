"""A regression adds the squares of all its weights to the loss, one tensor after the other.

analyzer: many_small_tensors
line: penalty = penalty + weight.square().sum()
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def penalty_of(model: nn.Module) -> Tensor:
    penalty = torch.zeros(())
    for weight in model.parameters():
        penalty = penalty + weight.square().sum()
    return penalty


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(80)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    features, targets = torch.randn(256, 64), torch.randn(256, 64)
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(features), targets)
            torch.autograd.backward(loss + 1e-4 * penalty_of(model))
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
