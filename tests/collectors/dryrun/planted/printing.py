"""A compiled function that prints."""

from __future__ import annotations

import torch


def forward(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x) + 1
    print("half way")  # noqa: T201  # graph break
    return torch.cos(y) * 2


x = torch.ones(4).to("neuron", non_blocking=True)
run = torch.compile(forward, backend="neuron")
for _ in range(3):
    run(x)
