"""An evaluation that scores all documents in one go, with everything kept for a backward.

analyzer: peak_memory
line: hidden = torch.relu(self.encode(documents))
gain: not measured: memory, no time
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Scorer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(64, 1024)
        self.score = nn.Linear(1024, 1)

    def forward(self, documents: Tensor) -> Tensor:
        hidden = torch.relu(self.encode(documents))
        out: Tensor = self.score(hidden)
        return out


def main() -> None:
    torch.manual_seed(0)
    model = Scorer().eval()
    documents = torch.randn(20_000, 64)
    with neuron_explorer.profile():
        model(documents).argmax()


if __name__ == "__main__":
    main()
