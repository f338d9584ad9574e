"""A small GPT block whose attention multiplies, scales, masks and normalises in ops of its own.

analyzer: handwritten_fused_ops
line: scores = (query @ key.transpose(-2, -1)) / math.sqrt(query.size(-1))
gain: verifiable
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

import neuron_explorer


class CausalSelfAttention(nn.Module):
    mask: Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(length, length).tril() == 0)

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(hidden).chunk(3, dim=-1)
        )
        scores = (query @ key.transpose(-2, -1)) / math.sqrt(query.size(-1))
        scores = scores.masked_fill(self.mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, width)
        projected: Tensor = self.out(mixed)
        return projected


def main() -> None:
    torch.manual_seed(0)
    attention = CausalSelfAttention(width=256, heads=4, length=256)
    hidden = torch.randn(4, 256, 256)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            torch.autograd.backward(attention(hidden).sum())
            profiler.step()


if __name__ == "__main__":
    main()
