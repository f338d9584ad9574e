"""The losses stay on the device."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import neuron_explorer


class Loss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))

    def forward(self, features: Tensor) -> Tensor:
        loss: Tensor = self.body(features).square().mean()
        return loss


def main() -> None:
    torch.manual_seed(0)
    neuron_explorer.dryrun("trn2")

    eager = Loss().to("neuron")
    model = torch.compile(eager, backend="neuron", dynamic=False)
    with torch.no_grad():
        model(torch.zeros(32, 256).to("neuron"))

    requests = torch.randn(6, 32, 256)
    history = []
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for request in requests:
            features = request.to("neuron", non_blocking=True)
            loss = model(features)
            history.append(loss)
            profiler.step()


if __name__ == "__main__":
    main()
