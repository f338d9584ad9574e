# mypy: disable-error-code="no-any-return, no-untyped-call"
"""Code without a file: a notebook's cell, and a text that was typed in and can be looked up."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

NAMES = ("<ipython-input-1-cells>", "<typed-cells>")


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.proj(x)  # op: linear*2 AddmmBackward0*2
        return x * torch.sigmoid(h)  # op: sigmoid*2 mul*2 SigmoidBackward0*2 MulBackward0*2


def cell() -> None:
    x = torch.ones(2, 4)  # op: ones*2
    loss = Gate()(x).sum()  # op: sum*2 SumBackward0*2
    loss.backward()  # op: ones_like*2 torch::autograd::AccumulateGrad*4
    [x.neg() for _ in range(2)]  # op: neg*4
    (lambda t: t.exp())(x)  # noqa: PLC3002 # op: exp*2


def main() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    for name in NAMES:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        space: dict[str, Any] = {"__name__": "cells", "__file__": __file__}
        exec(compile(source, name, "exec"), space)
        space["cell"]()
