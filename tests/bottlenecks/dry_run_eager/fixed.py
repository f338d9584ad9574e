"""The model is one compiled program."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    neuron_explorer.dryrun("trn2")

    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to("neuron")

    requests = torch.randn(6, 32, 256)
    fast = torch.compile(model, backend="neuron", dynamic=False)
    with torch.no_grad():
        fast(torch.zeros(32, 256).to("neuron"))
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for request in requests:
            features = request.to("neuron", non_blocking=True)
            fast(features)
            profiler.step()


if __name__ == "__main__":
    main()
