"""A function that two others call: its own line counts, not theirs."""

from __future__ import annotations

import torch


def squashed(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x)  # own: sigmoid sigmoid_backward


def wide(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = x @ w  # shared: mm t
    return squashed(h)


def narrow(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = squashed(x)
    return h @ w  # shared: mm t


def both(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    h = wide(x, w)
    y = narrow(h, v)
    return y.exp()  # own: exp; shared: mul


def main() -> None:
    torch.manual_seed(0)
    x, w, v = torch.randn(4, 8), torch.randn(8, 12), torch.randn(12, 6)
    torch.compile(both)(x, w.requires_grad_(), v.requires_grad_()).sum().backward()  # type: ignore[no-untyped-call]
