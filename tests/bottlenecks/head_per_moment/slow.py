"""A tagger calls its head for each moment of the sequence, and trains through that loop.

analyzer: for_loop_indexing
line: scores = [self.head(states[:, moment]) for moment in range(states.shape[1])]
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
        self.head = nn.Linear(128, 32)

    def forward(self, sequences: Tensor) -> Tensor:
        states = self.encoder(sequences)
        scores = [self.head(states[:, moment]) for moment in range(states.shape[1])]
        return torch.stack(scores, dim=1)


def main() -> None:
    torch.manual_seed(0)
    model = Tagger()
    sequences, tags = torch.randn(16, 64, 128), torch.randint(32, (16, 64))
    with neuron_explorer.profile() as profiler:
        for _ in range(4):
            model.zero_grad()
            scores = model(sequences)
            torch.autograd.backward(
                nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
            )
            profiler.step()


if __name__ == "__main__":
    main()
