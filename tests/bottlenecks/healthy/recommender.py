"""Embedding bags and a tower of linear layers score items for users."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    users, items = nn.EmbeddingBag(10_000, 256), nn.EmbeddingBag(10_000, 256)
    tower = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
    history, bought = torch.randint(0, 10_000, (2, 1024, 20))
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            tower(torch.cat([users(history), items(bought)], dim=1))
            profiler.step()


if __name__ == "__main__":
    main()
