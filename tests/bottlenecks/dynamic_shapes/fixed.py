"""A sentence classifier pads each batch to a multiple of 32 tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import neuron_explorer


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 512, padding_idx=0)
        self.head = nn.Linear(512, 512)

    def forward(self, tokens: Tensor) -> Tensor:
        vectors = self.embedding(tokens)
        logits: Tensor = self.head(vectors[:, 0])
        return logits


def collate(sentences: list[Tensor]) -> Tensor:
    padded = pad_sequence(sentences, batch_first=True)
    return nn.functional.pad(padded, (0, -padded.shape[1] % 32))


def main() -> None:
    torch.manual_seed(0)
    model = Classifier()
    batches = [
        [torch.randint(1, 100, (longest - i,)) for i in range(4)] for longest in (11, 23, 17)
    ]
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for sentences in batches:
            model(collate(sentences))
            profiler.step()


if __name__ == "__main__":
    main()
