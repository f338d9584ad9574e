"""A convolutional classifier in channels-last, with inputs in the same layout."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(64, 512, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(512, 512, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(8, 64, 16, 16).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (8,))
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(model(images), labels))
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
