"""A classifier normalises its batch image by image before the first layer.

analyzer: many_small_tensors
line: return (image - image.mean()) / (image.std() + 1e-6)
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def normalised(image: Tensor) -> Tensor:
    return (image - image.mean()) / (image.std() + 1e-6)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    images = torch.randn(256, 3, 32, 32)
    labels = torch.randint(10, (256,))
    model(images[:1])
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            model.zero_grad()
            batch = torch.stack([normalised(image) for image in images])
            torch.autograd.backward(nn.functional.cross_entropy(model(batch), labels))
            profiler.step()


if __name__ == "__main__":
    main()
