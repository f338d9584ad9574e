"""A diffusion sampler writes each part of its update to memory.

analyzer: compile_opportunities
line: clean = ((image - SIGMA * noise) / ALPHA).clamp(-1, 1)
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer

ALPHA, SIGMA, NEXT_ALPHA, NEXT_SIGMA = 0.8, 0.6, 0.866, 0.5


def update(image: Tensor, noise: Tensor) -> Tensor:
    clean = ((image - SIGMA * noise) / ALPHA).clamp(-1, 1)
    noise = (image - ALPHA * clean) / SIGMA
    return NEXT_ALPHA * clean + NEXT_SIGMA * noise


def main() -> None:
    torch.manual_seed(0)
    model = nn.Conv2d(4, 4, 3, padding=1)
    image = torch.randn(8, 4, 256, 256)
    with torch.no_grad():
        update(image, model(image))
        with neuron_explorer.profile() as profiler:
            for _ in range(4):
                image = update(image, model(image))
                profiler.step()


if __name__ == "__main__":
    main()
