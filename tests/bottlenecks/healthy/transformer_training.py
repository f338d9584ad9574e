"""PyTorch's own encoder trains with foreach AdamW."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, num_layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    features, targets = torch.randn(8, 256, 512), torch.randn(8, 256, 512)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.mse_loss(model(features), targets))
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
