"""The same samples, decoded once before the loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import neuron_explorer


class Samples(Dataset[Tensor]):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> Tensor:
        sample = torch.full((16_384,), float(index))
        for _ in range(8):
            sample = torch.sort(sample.sin()).values
        return sample[:64]


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 64))
    decoded = torch.stack([Samples()[index] for index in range(32)])
    with neuron_explorer.profile() as profiler:
        for features in torch.split(decoded, 8):
            for _ in range(3):
                model(features).sum().backward()
            profiler.step()


if __name__ == "__main__":
    main()
