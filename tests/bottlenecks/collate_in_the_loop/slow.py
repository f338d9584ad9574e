"""Reviews are split, looked up and padded when a batch is collated, on each epoch again.

analyzer: input_wait
line: for tokens, labels in DataLoader(reviews, batch_size=64, collate_fn=collate):
gain: verifiable
runs: make score
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import neuron_explorer

LENGTH, WORDS = 300, 5000


def collate(reviews: list[tuple[str, int]]) -> tuple[Tensor, Tensor]:
    vocabulary = {f"word{number}": number for number in range(WORDS)}
    rows = []
    for text, _ in reviews:
        tokens = [vocabulary.get(word, 0) for word in text.split()][:LENGTH]
        rows.append(tokens + [0] * (LENGTH - len(tokens)))
    return torch.tensor(rows), torch.tensor([label for _, label in reviews])


def write(review: int) -> tuple[str, int]:
    length = 100 + 37 * review % 200
    return " ".join(f"word{(review + 7 * place) % WORDS}" for place in range(length)), review % 2


class Reviews(Dataset[tuple[str, int]]):
    def __init__(self, count: int) -> None:
        self.reviews = [write(number) for number in range(count)]

    def __len__(self) -> int:
        return len(self.reviews)

    def __getitem__(self, index: int) -> tuple[str, int]:
        return self.reviews[index]


def main() -> None:
    torch.manual_seed(0)
    reviews = Reviews(256)
    model = nn.Sequential(
        nn.Embedding(WORDS, 32), nn.Flatten(), nn.Linear(LENGTH * 32, 64), nn.ReLU()
    )
    head = nn.Linear(64, 2)
    with neuron_explorer.profile() as profiler:
        for tokens, labels in DataLoader(reviews, batch_size=64, collate_fn=collate):
            loss = nn.functional.cross_entropy(head(model(tokens)), labels)
            torch.autograd.backward(loss)
            profiler.step()


if __name__ == "__main__":
    main()
