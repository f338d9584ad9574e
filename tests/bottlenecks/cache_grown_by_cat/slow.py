"""A server generates token by token and grows its cache of keys and values by concatenation.

analyzer: grown_by_cat
line: keys = torch.cat([keys, key], dim=2)
analyzer: grown_by_cat
line: values = torch.cat([values, value], dim=2)
gain: verifiable
runs: make score
"""

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
    keys = torch.randn(BATCH, HEADS, PROMPT, WIDTH)
    values = torch.randn(BATCH, HEADS, PROMPT, WIDTH)
    with neuron_explorer.profile() as profiler:
        for _ in range(TOKENS):
            parts = project(hidden).view(BATCH, 3, HEADS, 1, WIDTH)
            query, key, value = parts.unbind(1)
            keys = torch.cat([keys, key], dim=2)
            values = torch.cat([values, value], dim=2)
            seen = nn.functional.scaled_dot_product_attention(query, keys, values)
            hidden = seen.transpose(1, 2).reshape(BATCH, 1, HEADS * WIDTH)
            profiler.step()


if __name__ == "__main__":
    main()
