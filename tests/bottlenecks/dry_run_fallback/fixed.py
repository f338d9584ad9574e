"""The noise of all steps is drawn once and copied."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    neuron_explorer.dryrun("trn2")

    eager = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to("neuron")
    model = torch.compile(eager, backend="neuron", dynamic=False)
    with torch.no_grad():
        model(torch.zeros(32, 256).to("neuron"))

    noises = torch.randn(4, 32, 256)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for noise in noises:
            model(noise.to("neuron", non_blocking=True))
            profiler.step()


if __name__ == "__main__":
    main()
