"""A trainer fills its gradients with zeros before the micro-batches that add to them.

analyzer: zero_grad_fills
line: optimizer.zero_grad(set_to_none=False)
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    micro_batches = torch.randn(2, 8, 1024)
    torch.autograd.backward(model(micro_batches[0]).square().mean())
    optimizer.step()
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            optimizer.zero_grad(set_to_none=False)
            for features in micro_batches:
                torch.autograd.backward(nn.functional.mse_loss(model(features), features) / 2)
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
