"""A training loop builds a report of its batch in plain Python between two ops of each step.

analyzer: python_overhead
line: loss: Tensor = nn.functional.mse_loss(prediction, targets)
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def describe(names: list[str]) -> dict[str, int]:
    return {name: sum(ord(letter) for letter in name) for name in names}


def step(model: nn.Module, features: Tensor, targets: Tensor, names: list[str]) -> Tensor:
    prediction = model(features)
    describe(names)
    loss: Tensor = nn.functional.mse_loss(prediction, targets)
    torch.autograd.backward(loss)
    return loss


def main() -> None:
    torch.manual_seed(0)
    model = nn.Linear(2048, 512)
    features, targets = torch.randn(256, 2048), torch.randn(256, 512)
    names = [f"sample/{number:06d}" for number in range(4000)]
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            step(model, features, targets, names)
            profiler.step()


if __name__ == "__main__":
    main()
