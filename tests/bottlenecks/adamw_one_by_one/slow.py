"""A small residual net trains with an AdamW that updates one parameter after the other.

analyzer: single_tensor_optimizer
line: optimizer.step()
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, features: Tensor) -> Tensor:
        out: Tensor = features + nn.functional.gelu(self.layer(self.norm(features)))
        return out


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(96) for _ in range(40)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, amsgrad=True, foreach=False)
    features, targets = torch.randn(64, 96), torch.randn(64, 96)
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(features), targets))
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
