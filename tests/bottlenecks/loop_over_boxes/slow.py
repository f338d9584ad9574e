"""A detector compares its boxes with the anchors one box at a time.

analyzer: for_loop_indexing
line: box = boxes[index]
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def distances(boxes: Tensor, anchors: Tensor) -> Tensor:
    rows = []
    for index in range(len(boxes)):
        box = boxes[index]
        rows.append((anchors - box).abs().sum(dim=-1))
    return torch.stack(rows)


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
