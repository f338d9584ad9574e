"""A trainer keeps a running average of its weights, entry by entry of the state dict.

analyzer: many_small_tensors
line: average[name] = 0.999 * average[name] + 0.001 * weight
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


@torch.no_grad()
def update(average: dict[str, Tensor], model: nn.Module) -> None:
    for name, weight in model.state_dict().items():
        average[name] = 0.999 * average[name] + 0.001 * weight


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(48, 48) for _ in range(120)])
    average = {name: weight.clone() for name, weight in model.state_dict().items()}
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
