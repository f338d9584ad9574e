"""All boxes at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def distances(boxes: Tensor, anchors: Tensor) -> Tensor:
    return torch.cdist(boxes, anchors, p=1)


def main() -> None:
    torch.manual_seed(0)
    boxes, anchors = torch.rand(256, 4), torch.rand(256, 4)
    head = nn.Linear(512, 1024)
    features = torch.randn(1024, 512)
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for _ in range(3):
            head(features)
            distances(boxes, anchors)
            profiler.step()


if __name__ == "__main__":
    main()
