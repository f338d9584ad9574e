"""A compiled function whose input changes its shape."""

from __future__ import annotations

import torch


def forward(x: torch.Tensor) -> torch.Tensor:  # recompile *2
    return torch.cos(torch.sin(x)) * 2


run = torch.compile(forward, backend="neuron")
for size in (4, 4, 6, 8, 4):
    run(torch.ones(size).to("neuron", non_blocking=True))
