"""Gradients are clipped in a loop over the parameters.

analyzer: many_small_tensors
line: gradient.mul_(scale)
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def clip(gradients: list[Tensor], scale: float) -> None:
    for gradient in gradients:
        gradient.mul_(scale)


def main() -> None:
    torch.manual_seed(0)
    gradients = [torch.randn(64) for _ in range(400)]
    head = nn.Linear(256, 256)
    features = torch.randn(256, 256)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            head(features)
            clip(gradients, 0.999)
            profiler.step()


if __name__ == "__main__":
    main()
