"""A small GPT block whose attention is one op."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class CausalSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(hidden).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        projected: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return projected


def main() -> None:
    torch.manual_seed(0)
    attention = CausalSelfAttention(width=256, heads=4)
    hidden = torch.randn(4, 256, 256)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            torch.autograd.backward(attention(hidden).sum())
            profiler.step()


if __name__ == "__main__":
    main()
