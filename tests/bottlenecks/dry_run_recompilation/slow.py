"""A server passes each request on at its own length.

analyzer: recompilations
line: hidden.append(first(features))
gain: not measured: the time is modelled, on the dry-run device
"""

from __future__ import annotations

import torch
from torch import nn

import neuron_explorer


def main() -> None:
    torch.manual_seed(0)
    neuron_explorer.dryrun("trn2")

    first = nn.Linear(256, 512).to("neuron")
    requests = [torch.randn(rows, 256).to("neuron") for rows in (32, 31, 29, 30, 27)]
    hidden = []
    with torch.no_grad(), neuron_explorer.profile() as profiler:
        for features in requests:
            hidden.append(first(features))
            profiler.step()


if __name__ == "__main__":
    main()
