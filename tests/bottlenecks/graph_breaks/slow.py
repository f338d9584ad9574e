"""A compiled step that branches on the value of its loss.

analyzer: graph_breaks
line: if loss > 1:
gain: not measured: its time is that of compiling, once
"""

from __future__ import annotations

import torch
from torch import Tensor

import neuron_explorer


@torch.compile(backend="aot_eager")
def scaled(features: Tensor) -> Tensor:
    loss = features.square().mean()
    if loss > 1:
        loss = loss.log()
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
