"""Requests are padded to one length."""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    neuron_explorer.dryrun("trn2")

    first = nn.Linear(256, 512).to("neuron")
    lengths = (32, 31, 29, 30, 27)
    padded = [nn.functional.pad(torch.randn(rows, 256), (0, 0, 0, 32 - rows)) for rows in lengths]
    requests = [each.to("neuron") for each in padded]
    hidden = []
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for features in requests:
            hidden.append(first(features))
            profiler.step()


if __name__ == "__main__":
    main()
