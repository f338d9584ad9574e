"""Data-parallel training on gloo, one trace a rank: `torchrun --nproc-per-node 2 two_ranks.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn
from torch.distributed import all_reduce, destroy_process_group, init_process_group

import neuron_explorer


def train(output: Path) -> None:
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    with neuron_explorer.profile(output=output, schedule=plan) as session:
        for _ in range(3):
            loss = model(torch.randn(32, 64)).square().mean()  # line: forward
            loss.backward()  # line: backward
            optimizer.step()  # line: optimizer
            optimizer.zero_grad()
            all_reduce(loss.detach())  # line: all_reduce
            session.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    init_process_group("gloo")
    train(Path(sys.argv[1]))
    destroy_process_group()
