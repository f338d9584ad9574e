"""A language model lays its tied embedding out anew for the scores of every step.

analyzer: layout_copies
line: weight = self.embedding.weight.t().contiguous()
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16_384, 256)
        self.body = nn.Linear(256, 256)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = torch.relu(self.body(self.embedding(tokens)))
        weight = self.embedding.weight.t().contiguous()
        return hidden @ weight


def main() -> None:
    torch.manual_seed(0)
    model = Model()
    tokens = torch.randint(16_384, (64,))
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            model(tokens)
            profiler.step()


if __name__ == "__main__":
    main()
