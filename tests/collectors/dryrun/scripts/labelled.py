"""A labelled training, recorded: each mark names the queue events of its line.

`labelled.py OUTPUT` writes the trace and prints the device's log.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict

import torch
from torch import nn

import neuron_explorer

device = neuron_explorer.dryrun("trn2")


class Net(nn.Module):
    """Two layers and a fallback."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.one(x)  # queue: aten::addmm
        x = torch.relu(x)  # queue: aten::relu
        x = x[:, :8] * 2  # queue: aten::mul
        y = torch.sort(x, dim=1)[0]  # queue: out in in
        x = x + y  # queue: aten::add
        z: torch.Tensor = nn.functional.linear(x, self.two.weight[:, :8])  # queue: aten::mm
        return z


model = Net().to("neuron")
update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    with neuron_explorer.profile(output=sys.argv[1]) as recording:
        for _ in range(3):
            x = torch.ones(4, 8).to("neuron")  # queue: in
            loss = model(x).pow(2).mean()  # queue: aten::pow aten::mean
            loss.backward(retain_graph=True)
            loss.backward()  # accumulated
            update.step()
            update.zero_grad()
            print(loss.item())  # noqa: T201  # queue: out
            recording.step()
events = [asdict(event) for event in device.log.events]
launches = [asdict(launch) for launch in device.log.launches]
print(json.dumps({"events": events, "launches": launches}))  # noqa: T201
