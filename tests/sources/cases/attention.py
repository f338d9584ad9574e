# mypy: disable-error-code="no-any-return, no-untyped-call"
"""A small transformer as people write it, trained for two steps."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def rotate(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)  # op: chunk*4
    return torch.cat((-b, a), dim=-1)  # op: neg*4 cat*4 NegBackward0*4 CatBackward0*4


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def split(self, x: Tensor) -> Tensor:
        x = x.unflatten(-1, (self.heads, self.size))  # op: unflatten*6
        return x.transpose(1, 2)  # op: transpose*6

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q = self.split(self.query(x))  # op: linear*2
        k = self.split(self.key(x))  # op: linear*2
        v = self.split(self.value(x))  # op: linear*2
        q = q * cos + rotate(q) * sin  # op: mul*4 add*2 MulBackward0*4 AddBackward0*2
        k = k * cos + rotate(k) * sin  # op: mul*4 add*2 MulBackward0*4 AddBackward0*2
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)  # op: transpose*2 matmul*2 div*2
        mask = torch.ones_like(scores, dtype=torch.bool).tril()  # op: ones_like*2 tril*2
        scores = scores.masked_fill(~mask, -1e9)  # op: bitwise_not*2 masked_fill*2
        weights = scores.softmax(-1)  # op: softmax*2 SoftmaxBackward0*2
        mixed = (weights @ v).transpose(1, 2)  # op: matmul*2 transpose*2
        return torch.as_tensor(self.out(mixed.flatten(2)))  # op: flatten*2 linear*2


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        square = x.pow(2)  # op: pow*4 PowBackward0*2
        variance = square.mean(-1, keepdim=True)  # op: mean*4 MeanBackward1*2
        x = x * torch.rsqrt(variance + 1e-6)  # op: add*4 rsqrt*4 mul*4 RsqrtBackward0*2
        return self.weight * x  # op: mul*4 MulBackward0*4


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = Norm(width), Norm(width)
        self.attention = Attention(width, 2)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x), cos, sin)  # op: add*2 AddBackward0*2
        h = self.norm_2(x)
        h = functional.silu(self.gate(h)) * self.up(h)  # op: linear*4 silu*2 mul*2 SiluBackward0*2
        return x + self.down(h)  # op: linear*2 add*2 AddBackward0*2


def main() -> None:
    block = Block(8)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1, foreach=False)
    angles = torch.outer(torch.arange(4), torch.ones(4))  # op: arange ones outer
    cos, sin = angles.cos(), angles.sin()  # op: cos sin
    for _ in range(2):
        x = torch.randn(2, 4, 8)  # op: randn*2
        out = block(x, cos, sin)
        loss = functional.mse_loss(out, x)  # op: mse_loss*2 MseLossBackward0*2
        optimizer.zero_grad()
        loss.backward()  # op: ones_like*2
        optimizer.step()  # op: add_*18
