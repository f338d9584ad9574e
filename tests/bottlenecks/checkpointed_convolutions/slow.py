"""A small residual net checkpoints its blocks in the reentrant way, with memory to spare.

analyzer: recomputation_cost
line: out: Tensor = torch.relu(images + self.second(torch.relu(self.first(images))))
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import neuron_explorer


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = torch.relu(images + self.second(torch.relu(self.first(images))))
        return out


def main() -> None:
    torch.manual_seed(0)
    stem = nn.Conv2d(3, 16, 3, padding=1)
    blocks = nn.ModuleList(Block(16) for _ in range(4))
    batch = torch.randn(4, 3, 48, 48)
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            images = stem(batch)
            for block in blocks:
                images = checkpoint(block, images, use_reentrant=True)
            torch.autograd.backward(images.square().mean())
            profiler.step()


if __name__ == "__main__":
    main()
