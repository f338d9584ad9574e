"""An image stem whose convolution has a bias that its batch norm takes off again.

analyzer: convolution_bias_before_norm
line: out: Tensor = self.norm(self.convolution(images))
gain: not measured: the convolution adds the bias itself, so the analyzer promises no time
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Stem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(64, 256, 3)
        self.norm = nn.BatchNorm2d(256)

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.norm(self.convolution(images))
        return out


def main() -> None:
    torch.manual_seed(0)
    model = Stem()
    images = torch.randn(4, 64, 32, 32)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            model(images).sum().backward()
            profiler.step()


if __name__ == "__main__":
    main()
