"""A training loop that evaluates on everything in the middle of every eighth step.

analyzer: outlier_steps
line: return float((model(held_out) - totals).abs().median())
gain: not measured: the fault is one in eight steps, seen over a longer window
"""

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
    errors = []
    with neuron_explorer.profile() as profiler:
        for number in range(20):
            for _ in range(4):
                model(batch).sum().backward()
            if number % 8 == 7:
                errors.append(evaluate(model, held_out, totals))
            profiler.step()


if __name__ == "__main__":
    main()
