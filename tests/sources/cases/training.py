# mypy: disable-error-code="no-any-return, no-untyped-call"
"""A training step: optimizers, clipping, schedules, accumulation, no gradients, devices."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def ema(average: Tensor, new: Tensor) -> None:
    average.mul_(0.9).add_(new, alpha=0.1)  # op: mul_*2 add_*2


def micro_step(model: nn.Module, x: Tensor) -> Tensor:
    loss = functional.mse_loss(model(x), x) / 2  # op: linear*4 mse_loss*4 div*4 MseLossBackward0*4
    loss.backward()  # op: ones_like*4 torch::autograd::AccumulateGrad*8
    return loss.detach()  # op: detach*4


def train(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> None:
    losses = [micro_step(model, x) for _ in range(2)]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # op: ... _foreach_norm*2 _foreach_mul_*2
    optimizer.step()  # op: ... _foreach_add_ _foreach_lerp_ _foreach_mul_
    optimizer.zero_grad()
    torch.stack(losses).mean().item()  # op: stack*2 mean*2 item*2


def main() -> None:
    model = nn.Linear(4, 4)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    x = torch.ones(2, 4)  # op: ones
    train(model, sgd, x)
    adam = torch.optim.Adam(model.parameters(), lr=0.1, foreach=True)
    train(model, adam, x)
    average = torch.zeros(4)  # op: zeros
    with torch.no_grad():
        for parameter in model.parameters():
            ema(average, parameter.mean())  # op: mean*2
    model.eval()
    with torch.inference_mode():
        model(x).argmax(-1)  # op: linear argmax
    x.to(torch.float64).half()  # op: to*2
    x.cpu().numpy()  # op: to detach
    torch.randn(3).tolist()  # op: randn
