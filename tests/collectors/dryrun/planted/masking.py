"""Sizes that depend on values."""

from __future__ import annotations

import torch

x = torch.arange(8.0).to("neuron", non_blocking=True)
for limit in (1, 2):
    chosen = x[x > limit]  # fallback *2, sync *6
    places = torch.nonzero(x > 3)  # fallback *2, sync *4
    zeroed = torch.where(x > limit, x, 0.0)
