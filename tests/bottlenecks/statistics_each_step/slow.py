"""A trainer writes quantiles of its gradients into a log after every step, in plain Python.

analyzer: python_overhead
line: optimizer.step()
gain: verifiable
runs: make score
"""

from __future__ import annotations

import json

import torch
from torch import nn

import neuron_explorer


def quantiles(model: nn.Linear) -> str:
    assert model.weight.grad is not None
    values = sorted(abs(value) for row in model.weight.grad.tolist() for value in row)
    picked = {part: values[len(values) * part // 100] for part in (1, 10, 50, 90, 99)}
    return json.dumps({"gradient": picked, "largest": values[-10:]})


def train(model: nn.Linear, steps: int) -> list[str]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, targets = torch.randn(512, 512), torch.randn(512, 64)
    log = []
    with neuron_explorer.profile() as profiler:
        for _ in range(steps):
            optimizer.zero_grad()
            for part in range(0, 512, 64):
                prediction = model(features[part : part + 64])
                loss = nn.functional.mse_loss(prediction, targets[part : part + 64])
                torch.autograd.backward(loss)
            log.append(quantiles(model))
            optimizer.step()
            profiler.step()
    return log


def main() -> None:
    torch.manual_seed(0)
    train(nn.Linear(512, 64), 6)


if __name__ == "__main__":
    main()
