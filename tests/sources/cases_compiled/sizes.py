"""Sizes that the compiler leaves open: the same kernels run for both."""

from __future__ import annotations

import torch


def mixed(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    s = q @ k.t()  # own: mm
    s.div_(8.0)  # own: div
    s = s.log_softmax(dim=-1)  # own: _log_softmax _log_softmax_backward_data abs all amax eq ne sub
    return s.tan()  # own: tan mul add pow


def main() -> None:
    torch.manual_seed(0)
    compiled = torch.compile(mixed, dynamic=True)
    for rows in (5, 7):
        q, k = torch.randn(rows, 8), torch.randn(rows + 4, 8)
        compiled(q.requires_grad_(), k.requires_grad_()).sum().backward()  # type: ignore[no-untyped-call]
