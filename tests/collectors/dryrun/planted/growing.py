"""A sequence that grows by a token a step, and a number that changes."""

from __future__ import annotations

import torch

step = torch.ones(1, 4).to("neuron", non_blocking=True)
cache = step
for number in range(4):
    cache = torch.cat([cache, step])  # recompile *3
    weights = torch.softmax(cache, 0)  # recompile *3
    scaled = step * number
    shifted = step + 0.5 * number
