"""A server answers whole batches under inference_mode."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Ranker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
        self.head = nn.Linear(1024, 128)

    def forward(self, queries: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(queries))
        return out


def main() -> None:
    torch.manual_seed(0)
    model = Ranker().eval()
    requests = [torch.randn(256, 1024) for _ in range(4)]
    with torch.inference_mode(), neuron_explorer.profile() as profiler:
        for request in requests:
            model(request).topk(5)
            profiler.step()


if __name__ == "__main__":
    main()
