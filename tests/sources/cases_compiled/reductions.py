"""Reductions and what is computed around them, in one line and in several."""

from __future__ import annotations

import torch


def scores(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    h = x.sin()  # own: sin
    h = h.masked_fill(mask, -1e9)  # own: masked_fill
    h = h.softmax(dim=-1)  # own: _softmax
    h = (
        h.rsqrt().clamp(max=3.0)  # own: rsqrt clamp
    )
    return h.cumsum(dim=0)  # own: cumsum


def main() -> None:
    x, mask = torch.rand(8, 24), torch.zeros(8, 24, dtype=torch.bool)
    with torch.no_grad():
        torch.compile(scores)(x, mask)
