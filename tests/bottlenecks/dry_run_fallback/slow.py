"""A denoiser draws its noise on the device, which hands the drawing to the CPU.

analyzer: cpu_fallbacks
line: noise = torch.randn(32, 256, device="neuron")
gain: not measured: the time is modelled, on the dry-run device
"""

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

    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            noise = torch.randn(32, 256, device="neuron")
            model(noise)
            profiler.step()


if __name__ == "__main__":
    main()
