"""A decoder builds its causal mask from Python lists in every step.

analyzer: python_overhead
line: return torch.tensor([[key <= query for key in keys] for query in keys])
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def causal(length: int) -> Tensor:
    keys = range(length)
    return torch.tensor([[key <= query for key in keys] for query in keys])


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self.qkv(hidden)[:, None].chunk(3, dim=-1)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        out: Tensor = self.out(mixed[:, 0])
        return out


def main() -> None:
    torch.manual_seed(0)
    attention = Attention(256)
    hidden = torch.randn(4, 256, 256)
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            attention(hidden, causal(hidden.shape[1]))
            profiler.step()


if __name__ == "__main__":
    main()
