"""A moving average of the weights is kept in a loop over all tensors of the model.

analyzer: many_small_tensors
line: average.mul_(0.99).add_(parameter, alpha=0.01)
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def update(averages: list[Tensor], parameters: list[Tensor]) -> None:
    for average, parameter in zip(averages, parameters, strict=True):
        average.mul_(0.99).add_(parameter, alpha=0.01)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(100)])
    parameters = [parameter.detach() for parameter in model.parameters()]
    averages = [parameter.clone() for parameter in parameters]
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(3):
            update(averages, parameters)
            profiler.step()


if __name__ == "__main__":
    main()
