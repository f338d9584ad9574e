"""A small CNN that wastes: a hand-written activation, a wait in every step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import neuron_explorer


class Gelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        inner = x * 0.79 * (1.0 + 0.04 * x * x)  # line: inner
        return 0.5 * x * (1.0 + torch.tanh(inner))  # line: tanh


class Block(nn.Module):
    def __init__(self, channels: int, out: int, activation: nn.Module) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)
        self.norm = nn.BatchNorm2d(out)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))  # line: conv
        return nn.functional.max_pool2d(self.activation(x), 2)  # line: pool


class Net(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 16, activation), Block(16, 32, nn.ReLU()))
        self.head = nn.Linear(32 * 16 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.head(self.blocks(x).flatten(1)))  # line: head


def train(model: nn.Module, output: Path) -> float:
    data = TensorDataset(torch.randn(48, 3, 64, 64), torch.randint(0, 10, (48,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    plan = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    total = 0.0
    with neuron_explorer.profile(output=output, schedule=plan) as session:
        for x, y in DataLoader(data, batch_size=16):  # line: input
            loss: Any = nn.functional.cross_entropy(model(x), y)  # line: loss
            loss.backward()  # line: backward
            optimizer.step()  # line: optimizer
            optimizer.zero_grad()
            total += loss.item()  # line: item
            session.step()
    return total


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    activation: nn.Module = Gelu()
    if sys.argv[2:] == ["compiled"]:
        activation.compile()
    train(Net(activation), Path(sys.argv[1]))
