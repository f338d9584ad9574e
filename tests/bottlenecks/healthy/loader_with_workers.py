"""Two workers load beside the step and stay alive between epochs."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(4096, 1024))
    loader = DataLoader(data, batch_size=1024, num_workers=2, persistent_workers=True)
    for _ in loader:  # workers start before anything is measured
        pass
    batches = iter(loader)
    with neuron_explorer.profile() as profiler:
        for (features,) in batches:
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(features), features))
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
