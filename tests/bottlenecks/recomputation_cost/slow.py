"""A small model that checkpoints every block, though memory is no problem.

analyzer: recomputation_cost
line: out: Tensor = features + self.down(torch.relu(self.up(features)))
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import neuron_explorer


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, features: Tensor) -> Tensor:
        out: Tensor = features + self.down(torch.relu(self.up(features)))
        return out


def main() -> None:
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block(128) for _ in range(4))
    batch = torch.randn(512, 128)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            features = batch
            for block in blocks:
                features = checkpoint(block, features, use_reentrant=False)
            torch.autograd.backward(features.square().mean())
            profiler.step()


if __name__ == "__main__":
    main()
