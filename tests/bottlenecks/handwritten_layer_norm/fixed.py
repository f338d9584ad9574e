"""The same with the op that PyTorch has."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Normed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, hidden: Tensor) -> Tensor:
        shape = hidden.shape[-1:]
        return nn.functional.layer_norm(hidden, shape, self.weight, self.bias)


def main() -> None:
    torch.manual_seed(0)
    norm, head = Normed(1024), nn.Linear(1024, 64)
    hidden = torch.randn(1024, 1024)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            head(norm(hidden))
            profiler.step()


if __name__ == "__main__":
    main()
