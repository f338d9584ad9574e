"""Every micro-batch opens its own autocast, which casts the weights of the layer again.

analyzer: repeated_casts
line: out: Tensor = self.layer(batch)
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1024, 1024)

    def forward(self, batch: Tensor) -> Tensor:
        out: Tensor = self.layer(batch)
        return out


def main() -> None:
    torch.manual_seed(0)
    model = Model()
    batches = torch.randn(4, 8, 1024)
    with neuron_explorer.profile() as profiler:
        for batch in batches:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                model(batch)
        profiler.step()


if __name__ == "__main__":
    main()
