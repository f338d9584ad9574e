"""A server generates token by token into a cache that is as long as its answer may be."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer

BATCH, HEADS, WIDTH = 4, 8, 64
PROMPT, TOKENS = 1024, 6


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    project = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH)
    hidden = torch.randn(BATCH, 1, HEADS * WIDTH)
    keys = torch.randn(BATCH, HEADS, PROMPT + TOKENS, WIDTH)
    values = torch.randn(BATCH, HEADS, PROMPT + TOKENS, WIDTH)
    with neuron_explorer.profile() as profiler:
        for end in range(PROMPT + 1, PROMPT + TOKENS + 1):
            parts = project(hidden).view(BATCH, 3, HEADS, 1, WIDTH)
            query, key, value = parts.unbind(1)
            keys[:, :, end - 1 : end] = key
            values[:, :, end - 1 : end] = value
            seen = nn.functional.scaled_dot_product_attention(
                query, keys[:, :, :end], values[:, :, :end]
            )
            hidden = seen.transpose(1, 2).reshape(BATCH, 1, HEADS * WIDTH)
            profiler.step()


if __name__ == "__main__":
    main()
