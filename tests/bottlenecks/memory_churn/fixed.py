"""The same blend as one product, without a frame in between."""

from __future__ import annotations

import torch
from torch import Tensor

import neuron_explorer


def blend(clip: Tensor, weights: Tensor) -> Tensor:
    out: Tensor = torch.tensordot(weights, clip, dims=1)
    return out


def main() -> None:
    torch.manual_seed(0)
    clip = torch.rand(16, 3, 512, 512)
    weights = torch.softmax(torch.arange(16.0), dim=0)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            blend(clip, weights)
            profiler.step()


if __name__ == "__main__":
    main()
