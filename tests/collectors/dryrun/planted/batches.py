"""A last batch that is smaller."""

from __future__ import annotations

import torch
from torch import nn

first, last = nn.Linear(8, 16).to("neuron"), nn.Linear(16, 4).to("neuron")  # sync *4
for rows in (4, 4, 3, 4, 2):
    x = torch.ones(rows, 8).to("neuron", non_blocking=True)
    x = first(x)  # recompile *2
    x = torch.relu(x)  # recompile *2
    x = last(x)  # recompile *2
