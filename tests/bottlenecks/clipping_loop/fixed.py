"""All gradients lie in one flat buffer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def clip(gradients: Tensor, scale: float) -> None:
    gradients.mul_(scale)


def main() -> None:
    torch.manual_seed(0)
    gradients = torch.randn(400 * 64)
    head = nn.Linear(256, 256)
    features = torch.randn(256, 256)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            head(features)
            clip(gradients, 0.999)
            profiler.step()


if __name__ == "__main__":
    main()
