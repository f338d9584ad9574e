"""An image pipeline resizes every picture in the training loop, on each epoch anew.

analyzer: input_wait
line: for images, labels in loader:
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import neuron_explorer


class Pictures(Dataset[tuple[Tensor, int]]):
    def __init__(self, pictures: Tensor) -> None:
        self.pictures = pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        picture = self.pictures[index][None]
        resized = nn.functional.interpolate(picture, size=(64, 64), mode="bicubic", antialias=True)
        return resized[0], index % 10


def main() -> None:
    torch.manual_seed(0)
    pictures = Pictures(torch.rand(32, 3, 256, 256))
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(53_824, 10)
    )
    loader = DataLoader(pictures, batch_size=8)
    with neuron_explorer.profile() as profiler:
        for images, labels in loader:
            torch.autograd.backward(nn.functional.cross_entropy(model(images), labels))
            profiler.step()


if __name__ == "__main__":
    main()
