"""The same loop with the evaluation after it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


@torch.no_grad()
def evaluate(model: nn.Module, held_out: Tensor, totals: Tensor) -> float:
    return float((model(held_out) - totals).abs().median())


def main() -> None:
    torch.manual_seed(0)
    model = nn.Linear(256, 256)
    batch = torch.randn(2_000, 256)
    held_out = torch.randn(60_000, 256)
    totals = held_out.sum(1, keepdim=True)
    with neuron_explorer.profile() as profiler:
        for _ in range(20):
            for _ in range(4):
                model(batch).sum().backward()
            profiler.step()
    evaluate(model, held_out, totals)


if __name__ == "__main__":
    main()
