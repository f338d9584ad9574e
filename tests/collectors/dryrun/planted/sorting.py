"""An op without a static program, in a loop."""

from __future__ import annotations

import torch

x = torch.arange(8.0).to("neuron", non_blocking=True)
for _ in range(3):
    x = x + 1
    ordered, _places = torch.sort(x)  # fallback *3, sync *9
    x = x * ordered
