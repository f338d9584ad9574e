"""The same with PyTorch's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def gelu(values: Tensor) -> Tensor:
    return nn.functional.gelu(values, approximate="tanh")


def main() -> None:
    torch.manual_seed(0)
    up, down = nn.Linear(256, 1024), nn.Linear(1024, 64)
    hidden = torch.randn(1024, 256)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            down(gelu(up(hidden)))
            profiler.step()


if __name__ == "__main__":
    main()
