"""Pictures are resized once, before the training."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    pictures = torch.rand(32, 3, 256, 256)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(53_824, 10)
    )
    small = nn.functional.interpolate(pictures, size=(64, 64), mode="bicubic", antialias=True)
    batches = list(zip(torch.split(small, 8), torch.split(torch.arange(32) % 10, 8), strict=True))
    with neuron_explorer.profile() as profiler:
        for images, labels in batches:
            torch.autograd.backward(nn.functional.cross_entropy(model(images), labels))
            profiler.step()


if __name__ == "__main__":
    main()
