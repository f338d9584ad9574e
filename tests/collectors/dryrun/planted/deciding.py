"""Waits that do not look like one."""

from __future__ import annotations

import torch

x = torch.ones(4).to("neuron")  # sync
if (x > 0).all():  # sync
    x = x + 1
print(x)  # noqa: T201  # sync
numbers = x.tolist()  # sync
on_host = x.cpu()  # sync
later = x.to("cpu", non_blocking=True)  # sync
torch.accelerator.synchronize()  # sync
