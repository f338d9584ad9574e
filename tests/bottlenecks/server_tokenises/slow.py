"""A server turns the text of each request into tokens between two ops of its step.

analyzer: python_overhead
line: vectors = embedding(torch.tensor(tokens))
gain: verifiable
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


def tokenise(text: str) -> list[int]:
    return [
        sum(ord(letter) * 31**place for place, letter in enumerate(word)) % 1000
        for word in text.split()
    ]


def answer(embedding: nn.Embedding, head: nn.Linear, query: Tensor, text: str) -> Tensor:
    prompt = head(query)
    tokens = tokenise(text)
    vectors = embedding(torch.tensor(tokens))
    out: Tensor = head(vectors).sum() + prompt.sum()
    return out


def main() -> None:
    torch.manual_seed(0)
    embedding, head = nn.Embedding(1000, 1024), nn.Linear(1024, 1024)
    query, text = torch.randn(512, 1024), "where does the time of this step go " * 300
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for _ in range(4):
            answer(embedding, head, query, text)
            profiler.step()


if __name__ == "__main__":
    main()
