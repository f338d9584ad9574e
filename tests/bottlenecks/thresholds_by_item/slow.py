"""A detector picks its boxes by reading each score into Python.

analyzer: for_loop_indexing
line: kept = [index for index in range(len(scores)) if scores[index].item() > 0.5]
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def pick(boxes: Tensor, scores: Tensor) -> Tensor:
    kept = [index for index in range(len(scores)) if scores[index].item() > 0.5]
    return boxes[torch.tensor(kept)]


def main() -> None:
    torch.manual_seed(0)
    head = nn.Linear(512, 5)
    features = torch.randn(4, 8000, 512)
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for image in features:
            found = head(image)
            pick(found[:, :4], found[:, 4].sigmoid())
            profiler.step()


if __name__ == "__main__":
    main()
