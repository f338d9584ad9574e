"""Each head of a multi-task model casts the shared features to fp32 for itself.

analyzer: repeated_casts
line: scores = [head(features.float()) for head in self.heads]
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(1024, 16) for _ in range(8))

    def forward(self, features: Tensor) -> Tensor:
        scores = [head(features.float()) for head in self.heads]
        return torch.cat(scores, dim=-1)


def main() -> None:
    torch.manual_seed(0)
    model = Heads()
    features = torch.randn(2048, 1024).to(torch.bfloat16)
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            model(features)
            profiler.step()


if __name__ == "__main__":
    main()
