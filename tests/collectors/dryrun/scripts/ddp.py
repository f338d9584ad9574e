"""One rank of a training over two processes: `ddp.py RANK STORE DEVICE`."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import neuron_explorer


def train(rank: int, device: str) -> list[float]:
    torch.manual_seed(rank)  # DDP makes the ranks equal
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    wrapped = DistributedDataParallel(model.to(device), bucket_cap_mb=1)
    update = torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + rank)
    losses = []
    for _ in range(3):
        loss = wrapped(torch.randn(6, 8).to(device)).pow(2).mean()
        loss.backward()
        update.step()
        update.zero_grad()
        losses.append(loss.item())
    return losses


def collectives(rank: int, device: str) -> list[object]:
    x = torch.full((3,), float(rank + 1), device=device)
    dist.all_reduce(x)
    found: list[object] = [x.tolist()]
    y = torch.arange(2, device=device) + 10 * rank
    gathered = [torch.empty(2, dtype=torch.long, device=device) for _ in range(2)]
    dist.all_gather(gathered, y)
    found.append([g.tolist() for g in gathered])
    whole = torch.empty(4, dtype=torch.long, device=device)
    work = dist.all_gather_into_tensor(whole, y, async_op=True)
    assert work is not None
    work.wait()
    found.append(whole.tolist())
    z = torch.full((2,), float(rank), device=device)
    dist.broadcast(z, src=1)
    dist.reduce(z, dst=0, op=dist.ReduceOp.MAX)
    found.append(z.tolist() if rank == 0 else None)
    dist.barrier()
    objects: list[object] = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    found.append(objects)
    return found


def connect(rank: int, store: str, backend: str) -> None:
    dist.init_process_group(
        backend,
        init_method=f"file://{store} {backend}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=60),
    )


def main() -> None:
    rank, store, device = int(sys.argv[1]), *sys.argv[2:]
    log = neuron_explorer.dryrun("trn2").log if device == "neuron" else None
    connect(rank, store, "gloo")
    found = {"losses": train(rank, device), "collectives": collectives(rank, device)}
    dist.destroy_process_group()
    if log is not None:
        events = [e for e in log.events if e.kind == "collective"]
        found["names"] = sorted({e.name for e in events})
        found["queues"] = sorted({e.queue for e in events})
        connect(rank, store, "neuron")
        found["by the device's back end"] = collectives(rank, device)
        dist.destroy_process_group()
    print(json.dumps(found), flush=True)  # noqa: T201
    # a process that had gloo's threads can abort when the interpreter ends, its work done
    os._exit(0)


main()
