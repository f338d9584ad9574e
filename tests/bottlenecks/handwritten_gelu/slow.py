"""A feed-forward layer computes its GELU from tanh, as GPT-2's first code did.

analyzer: handwritten_fused_ops
line: inner = math.sqrt(2 / math.pi) * (values + 0.044715 * values**3)
gain: verifiable
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

import neuron_explorer


def gelu(values: Tensor) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (values + 0.044715 * values**3)
    return 0.5 * values * (1 + torch.tanh(inner))


def main() -> None:
    torch.manual_seed(0)
    up, down = nn.Linear(256, 1024), nn.Linear(1024, 64)
    hidden = torch.randn(1024, 256)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            down(gelu(up(hidden)))
            profiler.step()


if __name__ == "__main__":
    main()
