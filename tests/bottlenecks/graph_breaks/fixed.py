"""The branch is part of the graph."""

from __future__ import annotations

import torch
from torch import Tensor

import neuron_explorer


@torch.compile(backend="aot_eager")
def scaled(features: Tensor) -> Tensor:
    loss = features.square().mean()
    loss = torch.where(loss > 1, loss.log(), loss)
    return loss.cos() * 2


def main() -> None:
    torch.manual_seed(0)
    torch.compiler.reset()
    features = torch.randn(64, 64)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            scaled(features)
            profiler.step()


if __name__ == "__main__":
    main()
