"""A function that two others call: its own line counts, not theirs."""

from __future__ import annotations

import torch


def squashed(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x)  # own: sigmoid sigmoid_backward


def wide(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = x @ w  # own: mm=4x8x12 mm=8x4x12
    return squashed(h)


def narrow(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = squashed(x)
    return h @ w  # own: mm=4x12x6 mm=12x4x6 mm=4x6x12


def both(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    h = wide(x, w)
    y = narrow(h, v)
    return y.exp()  # own: exp mul


def main() -> None:
    torch.manual_seed(0)
    x, w, v = torch.randn(4, 8), torch.randn(8, 12), torch.randn(12, 6)
    torch.compile(both)(x, w.requires_grad_(), v.requires_grad_()).sum().backward()  # type: ignore[no-untyped-call]
