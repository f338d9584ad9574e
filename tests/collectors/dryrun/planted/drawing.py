"""Random numbers are drawn on the host."""

from __future__ import annotations

import torch

noise = torch.randn(4, 4, device="neuron")  # fallback, sync *2
kept = torch.nn.functional.dropout(noise, 0.5)
uniform = torch.rand(4, device="neuron") + torch.rand(4, device="neuron")  # fallback *2, sync *4
