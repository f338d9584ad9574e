"""Attention heads are laid out anew before every product that could read them as they are.

analyzer: layout_copies
line: heads = projected.view(8, 256, 8, 64).transpose(1, 2).contiguous()
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def scores(projected: Tensor) -> Tensor:
    heads = projected.view(8, 256, 8, 64).transpose(1, 2).contiguous()
    return nn.functional.scaled_dot_product_attention(heads, heads, heads)


def main() -> None:
    torch.manual_seed(0)
    projected = torch.randn(8, 256, 512)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(3):
            scores(projected)
            profiler.step()


if __name__ == "__main__":
    main()
