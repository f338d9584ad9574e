"""A loop whose running metric looks at every prediction since the first step.

analyzer: step_time_drift
line: ranked = torch.cat(history).sort().values
gain: not measured: the loss grows with the window
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    batch, targets = torch.randn(20_000, 8), torch.randn(20_000)
    history: list[Tensor] = []
    with neuron_explorer.profile() as profiler:
        for _ in range(20):
            predictions = model(batch).flatten()
            torch.autograd.backward(nn.functional.mse_loss(predictions, targets))
            history.append(predictions.detach())
            ranked = torch.cat(history).sort().values
            _ = ranked[len(ranked) // 2]
            profiler.step()


if __name__ == "__main__":
    main()
