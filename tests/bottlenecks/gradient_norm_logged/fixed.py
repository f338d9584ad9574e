"""A trainer that takes the norm of all gradients in one op and reads one value back."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def gradient_norm(model: nn.Module) -> float:
    gradients = [each.grad.flatten() for each in model.parameters() if each.grad is not None]
    return float(torch.cat(gradients).norm())


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(150)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    features, targets = torch.randn(16, 32), torch.randn(16, 32)
    logged = []
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(features), targets))
            logged.append(gradient_norm(model))
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
