"""A model runs eagerly, each op as a program of its own.

analyzer: compile_gain
line: none
gain: not measured: the time is modelled, on the dry-run device
"""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    neuron_explorer.dryrun("trn2")

    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to("neuron")

    requests = torch.randn(6, 32, 256)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for request in requests:
            features = request.to("neuron", non_blocking=True)
            model(features)
            profiler.step()


if __name__ == "__main__":
    main()
