"""A compiled function that asks for a value."""

from __future__ import annotations

import torch


def forward(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    scale = y.sum().item()  # graph break, sync *3
    torch._dynamo.graph_break()  # graph break
    return torch.cos(y) * scale


x = torch.ones(4).to("neuron", non_blocking=True)
run = torch.compile(forward, backend="neuron")
for _ in range(3):
    run(x)
