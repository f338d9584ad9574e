"""One wide block in four is recomputed, for activations that are far larger than its inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import neuron_explorer


class Wide(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 16 * width), nn.Linear(16 * width, width)

    def forward(self, features: Tensor) -> Tensor:
        out: Tensor = self.down(torch.relu(self.up(features)))
        return out


def main() -> None:
    torch.manual_seed(0)
    wide = Wide(256)
    rest = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)])
    into, back = nn.Linear(1024, 256), nn.Linear(256, 1024)
    batch = torch.randn(1024, 1024)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            features = back(checkpoint(wide, into(rest(batch)), use_reentrant=False))
            torch.autograd.backward(features.mean())
            profiler.step()


if __name__ == "__main__":
    main()
