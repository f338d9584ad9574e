# mypy: disable-error-code="no-any-return, no-untyped-call"
"""Modules: own and torch's, nested, in containers and loops, forward and backward."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.project(x).chunk(2, dim=-1)  # op: linear*3 chunk*3 AddmmBackward0*3
        return a * torch.sigmoid(b)  # op: sigmoid*3 mul*3 MulBackward0*3 SigmoidBackward0*3


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = Gate(width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x)  # op: layer_norm*3 NativeLayerNormBackward0*3
        return x + self.scale * self.gate(normed)  # op: mul*3 add*3 MulBackward0*3 AddBackward0*3


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)  # op: conv2d batch_norm relu max_pool2d ConvolutionBackward0
        x = x.flatten(1)  # op: flatten
        return x.mean(dim=1, keepdim=True)  # op: mean MeanBackward1


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.blocks = nn.ModuleList([Block(8) for _ in range(3)])
        self.heads = nn.ModuleDict({"out": nn.Linear(8, 10)})
        self.image = Convolutional()

    def forward(self, ids: Tensor, image: Tensor) -> Tensor:
        x = self.embed(ids)  # op: embedding EmbeddingBackward0
        for block in self.blocks:
            x = block(x)
        out = self.heads["out"](x)  # op: linear AddmmBackward0
        return torch.as_tensor(out + self.image(image))  # op: add AddBackward0


def main() -> None:
    model = Model()
    ids = torch.arange(4)  # op: arange
    image = torch.ones(4, 1, 8, 8)  # op: ones
    loss = model(ids, image).logsumexp(1).sum()  # op: logsumexp sum LogsumexpBackward0
    loss.backward()  # op: ones_like
