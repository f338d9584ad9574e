"""The same loop with the metric of the latest steps only."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor, nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    batch, targets = torch.randn(20_000, 8), torch.randn(20_000)
    history: deque[Tensor] = deque([torch.zeros(20_000)] * 4, maxlen=4)
    with neuron_explorer.profile() as profiler:
        for _ in range(20):
            predictions = model(batch).flatten()
            torch.autograd.backward(nn.functional.mse_loss(predictions, targets))
            history.append(predictions.detach())
            ranked = torch.cat(list(history)).sort().values
            _ = ranked[len(ranked) // 2]
            profiler.step()


if __name__ == "__main__":
    main()
