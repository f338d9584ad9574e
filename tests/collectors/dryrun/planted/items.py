"""Values that the host asks for in every step."""

from __future__ import annotations

import torch

x = torch.ones(4).to("neuron", non_blocking=True)
total = 0.0
for number in range(5):
    x = x * 1.5
    total += x.sum().item()  # sync *5
    if number % 2 == 0:
        last = float(x[0])  # sync *3
