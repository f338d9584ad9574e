"""A convolution, running statistics, ops in place, and code of another file, nested in modules."""

from __future__ import annotations

from typing import Any

import torch
from sources.cases_compiled.library.gates import Narrow, gated
from torch import nn
from torch.nn import functional


def normed(norm: nn.Module, h: torch.Tensor) -> Any:
    return norm(h)  # own: _native_batch_norm_legit_functional native_batch_norm_backward add copy_


class Stem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 3, bias=False)
        self.bn = nn.BatchNorm2d(10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv(x)  # own: convolution convolution_backward
        h = normed(self.bn, h)
        h = functional.relu_(h)  # own: relu threshold_backward
        return functional.avg_pool2d(h, 2)  # own: avg_pool2d avg_pool2d_backward


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = Stem(), Narrow()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.stem(x)
        h = gated(h)
        y: torch.Tensor = self.head(h.flatten(1))  # own: view
        return y.clamp_(max=9.0)  # own: clamp le where


def main() -> None:
    torch.manual_seed(0)
    torch.compile(Net())(torch.randn(2, 3, 6, 6)).sum().backward()
